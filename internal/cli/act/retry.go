package act

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	configs "github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// hasFailed is an error if there is nothing to retry. It is none for a user who may not read
// what would tell: a retry of what has not failed does no harm.
func hasFailed(ctx context.Context, c client.Reader, ref describe.Ref, obj client.Object) error {
	var (
		failed bool
		err    error
		not    string
	)
	switch o := obj.(type) {
	case *v1beta1.Instance, *fleetv1.Module, *fleetv1.BootstrapModule: // [retryRollout] knows
		return nil
	case *v1alpha1.RolloutGroup:
		failed, not = groupHasFailed(o)
	default:
		failed, err = configHasFailed(ctx, c, obj)
		not = "is not retried: no workload has failed with it or was rolled back from it; nothing was changed"
	}
	switch {
	case apierrors.IsForbidden(err) || failed:
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%s %s", ref, not)
	}
}

// groupHasFailed is true of a group whose status says so because of a Pod; otherwise it says what
// the group is instead.
func groupHasFailed(group *v1alpha1.RolloutGroup) (failed bool, not string) {
	switch e := decision.ExplanationOf(group); {
	case e.HasFailed():
		return true, ""
	case e.Reason == rollout.ReasonGateRefused:
		return false, "is stopped by a gate that was refused, and not by a Pod: approve the gate after all, or roll out another revision; nothing was changed"
	default:
		return false, "has not failed: nothing was changed"
	}
}

// keepsChanging is true if workloads wait because the object changes after each roll.
func keepsChanging(r *v1alpha1.ConfigRollout) bool {
	return r.Rollout != nil && slices.ContainsFunc(r.Rollout.Causes, func(c v1alpha1.RolloutCause) bool {
		return c.Reason == string(configs.ReasonConfigKeepsChanging)
	})
}

// configHasFailed is true if a workload has a record that a retry of the object ends.
func configHasFailed(ctx context.Context, c client.Reader, obj client.Object) (bool, error) {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	object := content.Object{Kind: content.Kind(kind), Namespace: obj.GetNamespace(), Name: obj.GetName()}
	in := []string{object.Namespace}
	if strings.TrimSpace(vocabulary.SharedWith.Get(obj.GetAnnotations())) != "" {
		in = []string{""} // its users may be anywhere
	}
	workloads, err := workload.List(ctx, c, in)
	if err != nil {
		return false, err
	}
	retried := content.RetriedBy(obj.GetAnnotations())
	record := &v1alpha1.ConfigRollout{}
	err = c.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: verdict.Name(object)}, record)
	if err != nil && !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
		return false, fmt.Errorf("get what has failed: %w", err)
	}
	if slices.ContainsFunc(verdict.Read(record), func(v verdict.Verdict) bool { return !retried.After(v.At) }) || keepsChanging(record) {
		return true, nil
	}
	return slices.ContainsFunc(workloads, func(w client.Object) bool { return workload.AwaitsRetry(w, object, retried) }), nil
}
