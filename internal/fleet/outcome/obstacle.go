package outcome

import (
	"errors"
	"fmt"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/rollout"
)

// Unbound returns the state of a sync whose bindings have the error: what must be fixed
// goes before what may still appear.
func Unbound(err error) (state v1alpha1.State, reason rollout.Reason, message string) {
	for _, e := range unjoin(err) {
		var b *binding.Error
		if !errors.As(e, &b) || !b.Waits {
			return v1alpha1.StateFailed, ReasonInvalidBinding, e.Error()
		}
	}
	return v1alpha1.StateWaiting, ReasonBindingNotReady, unjoin(err)[0].Error()
}

// unjoin returns the errors that were joined.
func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// Unusable returns the state of the syncs of a cluster that cannot be reached, for a
// problem that package cluster reports; no state without a problem.
func Unusable(problem error, secret string) (state v1alpha1.State, reason rollout.Reason, message string) {
	var invalid *cluster.InvalidError
	switch {
	case problem == nil:
		return "", "", ""
	case errors.Is(problem, cluster.ErrMissing):
		return v1alpha1.StateWaiting, ReasonKubeconfig, fmt.Sprintf("Secret %s with a kubeconfig not found", secret)
	case errors.As(problem, &invalid):
		return v1alpha1.StateFailed, ReasonKubeconfig, fmt.Sprintf("Secret %s: %s", secret, invalid)
	default:
		return v1alpha1.StateUnreachable, ReasonUnreachable, problem.Error()
	}
}
