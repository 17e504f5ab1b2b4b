package act

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/steering"
)

// Missing is the verb that the user of a client lacks for a write, empty if she lacks none. The
// verb is that of the act, empty if there is none for it.
func Missing(ctx context.Context, c client.Client, needs authorizationv1.ResourceAttributes, verb string) (string, error) {
	a := asker{ctx: ctx, client: c, needs: needs}
	verbs := steering.Verbs(needs.Group, needs.Resource)
	isLimited := needs.Verb == "patch" && needs.Subresource == "" && len(verbs) > 0
	switch {
	case !a.may(needs.Verb):
		return needs.Verb, a.err
	case !isLimited || a.may("update") || slices.Contains(verbs, verb) && a.may(verb) || !slices.ContainsFunc(verbs, a.may):
		return "", a.err
	case slices.Contains(verbs, verb):
		return verb, a.err
	default:
		return "update", a.err
	}
}

// asker asks what the user may do with an object. After an error it asks nothing.
type asker struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one answer
	client client.Client
	needs  authorizationv1.ResourceAttributes
	err    error
}

func (a *asker) may(verb string) bool {
	if a.err != nil {
		return false
	}
	needs := a.needs
	needs.Verb = verb
	may, err := change.May(a.ctx, a.client, &needs)
	if err != nil {
		a.err = fmt.Errorf("ask whether you may do it: %w", err)
	}
	return may
}
