package explain

import (
	"context"

	"github.com/spillway-dev/spillway/internal/describe"
)

// maxLinks bounds a chain. The longest that makes sense, from a module down to the
// manager of the cluster beneath it, has fifteen.
const maxLinks = 24

// follow asks until there is nothing more to ask, and never asks twice about the same
// object. Where the caller may not read, or a cluster does not answer, the chain ends with
// a link that says so; it is an error if nothing at all was found.
func follow(ctx context.Context, q *question) (Chain, error) {
	first, err := q.answer(ctx, true)
	if err != nil && (len(first.Links) == 0 || ctx.Err() != nil) {
		return Chain{}, err
	}
	chain := Chain{Links: q.links(&first, err), Facts: first.Facts, Details: first.Details}
	asked := map[describe.Ref]bool{q.asker.at(q.ref): true}
	for next := first.Then; err == nil && next != nil && len(chain.Links) < maxLinks && !asked[next.asker.at(next.ref)]; {
		asked[next.asker.at(next.ref)] = true
		var a answer
		a, err = next.answer(ctx, false)
		chain.Links = append(chain.Links, next.links(&a, err)...)
		next = a.Then
	}
	return chain, nil
}

// links are those of an answer, with the one where it was cut short.
func (q *question) links(a *answer, err error) []Link {
	if err != nil {
		return append(a.Links, q.asker.unseen(q.ref, err))
	}
	return a.Links
}
