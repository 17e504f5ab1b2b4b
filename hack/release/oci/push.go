package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Push pushes releases, and signs all that is pushed. Images go to the repository, and
// charts to their own. Tags come last, in the order of the releases, once all that they lead
// to exists: a push that fails before leaves no tag of a release behind.
func Push(ctx context.Context, repository string, releases []Release, signing Signing, options ...remote.Option) ([]name.Digest, error) {
	options = append(options, remote.WithContext(ctx))
	pushers := make([]pusher, 0, len(releases))
	for _, r := range releases {
		repo, err := name.NewRepository(cmp.Or(r.Repository, repository))
		if err != nil {
			return nil, fmt.Errorf("repository %q: %w", cmp.Or(r.Repository, repository), err)
		}
		p := pusher{ctx, repo, signing, options}
		if err := p.checkTag(r); err != nil {
			return nil, err
		}
		pushers = append(pushers, p)
	}
	for i, r := range releases {
		if err := pushers[i].push(r); err != nil {
			return nil, fmt.Errorf("push %s to %s: %w; no tag of this release was set", r.Tag, pushers[i].repository, err)
		}
	}
	var digests []name.Digest
	for i, r := range releases {
		repo := pushers[i].repository
		digest, err := r.root().Digest()
		if err != nil {
			return nil, fmt.Errorf("digest of %s: %w", r.Tag, err)
		}
		if err := remote.Tag(repo.Tag(r.Tag), r.root(), options...); err != nil {
			return nil, fmt.Errorf("tag %s: %w", repo.Tag(r.Tag), err)
		}
		digests = append(digests, repo.Digest(digest.String()))
	}
	return digests, nil
}

// Signing signs what was pushed, before any tag leads to it.
type Signing interface {
	// Sign signs a manifest. What is signed already need not be signed again.
	Sign(ctx context.Context, manifest name.Digest, options ...remote.Option) error
}

type pusher struct {
	ctx        context.Context //nolint:containedctx // of one push
	repository name.Repository
	signing    Signing
	options    []remote.Option
}

// checkTag refuses to replace what was released.
func (p pusher) checkTag(r Release) error {
	tag := p.repository.Tag(r.Tag)
	found, err := remote.Head(tag, p.options...)
	if refused, ok := errors.AsType[*transport.Error](err); ok && refused.StatusCode == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for %s: %w; nothing was pushed", tag, err)
	}
	digest, err := r.root().Digest()
	if err != nil {
		return fmt.Errorf("digest of %s: %w", r.Tag, err)
	}
	if found.Digest != digest {
		return fmt.Errorf("%s exists, and is %s instead of %s: a release is never replaced; release another version", tag, found.Digest, digest)
	}
	return nil
}

// push pushes by digest: the platforms with the index, or the chart, then what is attached
// to them, then the signatures.
func (p pusher) push(r Release) error {
	digests, err := p.pushRoot(r)
	if err != nil {
		return err
	}
	for _, referrer := range r.Referrers {
		digest, err := referrer.Digest()
		if err != nil {
			return fmt.Errorf("digest of what is attached: %w", err)
		}
		if err := remote.Write(p.repository.Digest(digest.String()), referrer, p.options...); err != nil {
			return fmt.Errorf("attach to it: %w", err)
		}
		digests = append(digests, digest)
	}
	for _, digest := range digests {
		if err := p.signing.Sign(p.ctx, p.repository.Digest(digest.String()), p.options...); err != nil {
			return err
		}
	}
	return nil
}

// pushRoot pushes what the tag will lead to, and returns the digests in it.
func (p pusher) pushRoot(r Release) ([]v1.Hash, error) {
	root, err := descriptor(r.root())
	if err != nil {
		return nil, err
	}
	digests, at := []v1.Hash{root.Digest}, p.repository.Digest(root.Digest.String())
	if r.Chart != nil {
		if err := remote.Write(at, r.Chart, p.options...); err != nil {
			return nil, fmt.Errorf("chart: %w", err)
		}
		return digests, nil
	}
	if err := remote.WriteIndex(at, r.Index, p.options...); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	manifest, err := r.Index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	for _, d := range manifest.Manifests {
		digests = append(digests, d.Digest)
	}
	return digests, nil
}
