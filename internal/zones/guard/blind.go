package guard

import (
	"context"
	"net/http"

	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// blind answers requests that may come from anybody, from what they say alone. It
// has no client. What cannot be judged so is refused.
type blind struct{ options Options }

// forbids answers as [forbidder] does. A Scale does not say what labels its object has.
func (b blind) forbids(_ context.Context, req webhook.Request) webhook.Response {
	c, err := changeOf(&req)
	switch {
	case err != nil:
		return b.options.unknown(err.Error())
	case c.unclear():
		return b.options.unknown("old/new replicas is nil, allowing the change")
	case !c.lowers():
		return allow()
	case c.isScale:
		return deny(c.refused(admission.NoKey))
	default:
		return c.judge()
	}
}

// prepares answers as [preparer] does, but prepares nothing, and so admits nothing that is
// to be prepared.
func (b blind) prepares(_ context.Context, req webhook.Request) webhook.Response {
	c, err := changeOf(&req)
	switch {
	case req.DryRun != nil && *req.DryRun:
		return allow()
	case err != nil:
		return b.options.unknown(err.Error())
	case c.unclear():
		return b.options.unknown("old/new replicas is nil, allowing the change")
	case !c.lowers(), !c.isScale && vocabulary.PrepareDownscale.Get(c.labels) != "true":
		return allow()
	default:
		return deny(c.refused(admission.NoKey))
	}
}

// evicts refuses, so that the client tries again.
func (blind) evicts(_ context.Context, req webhook.Request) webhook.Response {
	if err := isEviction(&req); err != nil {
		return denyWith(http.StatusBadRequest, err.Error())
	}
	return denyWith(http.StatusTooManyRequests, admission.NoKey)
}
