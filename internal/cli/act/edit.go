package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	configs "github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// newObject returns an empty object of a kind that can be acted upon. Of ConfigMaps and Secrets it is without values.
func newObject(scheme *runtime.Scheme, kind string) (client.Object, error) {
	gvk, _ := describe.KindNamed(kind)
	if kind == describe.KindConfigMap || kind == describe.KindSecret {
		m := kube.Metadata(gvk)
		return m, nil
	}
	made, err := scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	obj, _ := made.(client.Object) // all of them are
	return obj, nil
}

var errNotPaused = errors.New("is not paused")

// pauseField is the field by which an object is paused, nil if it is paused otherwise.
func pauseField(obj client.Object) **v1alpha1.Pause {
	switch o := obj.(type) {
	case *v1alpha1.RolloutGroup:
		return &o.Spec.Pause
	case *v1alpha1.ConfigPolicy:
		return &o.Spec.Pause
	case *v1alpha1.ClusterConfigPolicy:
		return &o.Spec.Pause
	default:
		return nil
	}
}

func pause(obj client.Object, who Author) error {
	if field := pauseField(obj); field != nil {
		if p := *field; p != nil && p.Reason == who.Reason {
			return alreadyPaused(p.By)
		}
		*field = &v1alpha1.Pause{Reason: who.Reason, By: who.By, Since: &who.At}
		return nil
	}
	switch obj.(type) {
	case *fleetv1.Module, *fleetv1.BootstrapModule:
		return pauseModule(obj, who)
	default:
		return pauseByAnnotation(obj, who)
	}
}

// pauseModule also notes who did, because spec.suspend does not say.
func pauseModule(module client.Object, who Author) error {
	spec, _ := model.Parts(module)
	if spec.Suspend {
		by := ""
		if s := model.SteeringOf(module); s != nil && s.Verb == model.VerbPause {
			by = s.By
		}
		return alreadyPaused(by)
	}
	spec.Suspend = true
	return note(module, model.VerbPause, spec, who)
}

// pauseByAnnotation also records who did, but for an Instance, which says who set the
// annotation by its managed fields.
func pauseByAnnotation(obj client.Object, who Author) error {
	annotations := obj.GetAnnotations()
	if vocabulary.Paused.Get(annotations) == "true" {
		return alreadyPaused(content.PauseOf(annotations).By)
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	p := content.Pause{By: who.By, Reason: who.Reason, At: who.At.UTC()}
	if _, ok := obj.(*v1beta1.Instance); ok {
		p = content.Pause{}
	}
	p.Set(annotations)
	obj.SetAnnotations(annotations)
	return nil
}

func alreadyPaused(by string) error {
	return fmt.Errorf("is already paused%s", ByName(by))
}

func resume(obj client.Object, who Author) error {
	if field := pauseField(obj); field != nil {
		if *field == nil {
			return errNotPaused
		}
		*field = nil
		return nil
	}
	switch obj.(type) {
	case *fleetv1.Module, *fleetv1.BootstrapModule:
		spec, _ := model.Parts(obj)
		if !spec.Suspend {
			return errNotPaused
		}
		spec.Suspend = false
		return note(obj, model.VerbResume, spec, who)
	default:
		return resumeByAnnotation(obj)
	}
}

func note(module client.Object, verb string, spec *fleetv1.ModuleSpec, who Author) error {
	s := model.Steering{Verb: verb, By: who.By, Reason: who.Reason, At: who.At, Revision: spec.TargetRevision}
	return s.Note(module)
}

func resumeByAnnotation(obj client.Object) error {
	annotations := obj.GetAnnotations()
	if vocabulary.Paused.Get(annotations) != "true" {
		return errNotPaused
	}
	for _, name := range append(vocabulary.Paused.Names(), vocabulary.PausedBy.Native) {
		delete(annotations, name)
	}
	obj.SetAnnotations(annotations)
	return nil
}

// retryRollout lets a group that has failed start again, or a change of config on which a
// workload has failed, as [hasFailed] has found.
func retryRollout(obj client.Object, who Author) error {
	if group, ok := obj.(*v1alpha1.RolloutGroup); ok {
		group.Spec.Retry = &v1alpha1.Retry{At: who.At, Reason: who.Reason, By: who.By}
		return nil
	}
	switch o := obj.(type) {
	case *v1beta1.Instance:
		return RetryPlan(o, who)
	case *fleetv1.Module, *fleetv1.BootstrapModule:
		return retryModule(o, who)
	}
	next := who.At.Add(time.Second) // so that it is after all that failed within this second
	Annotate(obj, vocabulary.RetryConfig.Native, next.UTC().Format(time.RFC3339))
	return nil
}

// retryModule has what a module has given up rolled out once more.
func retryModule(module client.Object, who Author) error {
	spec, status := model.Parts(module)
	retry := model.NewRetry(status, who.By, who.Reason)
	switch {
	case retry == nil && status.Phase == string(rollout.PhaseFailed):
		return errors.New("has given up no revision: fix the cluster that failed, which counts again when it is ready; nothing was changed")
	case retry == nil:
		return errors.New("has given up no revision: nothing was changed")
	case spec.TargetRevision != "" && spec.TargetRevision != retry.Revision:
		return fmt.Errorf("is set to revision %s by spec.targetRevision, and not to %s, which was given up", spec.TargetRevision, retry.Revision)
	}
	return retry.Note(module)
}

// Annotate sets an annotation of an object.
func Annotate(obj client.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// RetryPlan orders the plan of an Instance that has failed to continue from where it failed.
func RetryPlan(i *v1beta1.Instance, who Author) error {
	if x := i.Status.Execution; x == nil || x.Result != v1beta1.ResultFailed && x.Result != v1beta1.ResultAbandoned {
		return errors.New("the last plan has not failed and was not abandoned")
	}
	return Order(i, vocabulary.RetryPlan, who)
}

// Order annotates an Instance with an order about its execution.
func Order(i *v1beta1.Instance, key vocabulary.Key, who Author) error {
	raw, err := json.Marshal(map[string]string{"uid": string(i.Status.Execution.UID), "by": who.By, "reason": who.Reason})
	if err != nil {
		return fmt.Errorf("encode the order: %w", err)
	}
	Annotate(i, key.Native, string(raw))
	return nil
}

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
