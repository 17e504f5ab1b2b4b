package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/plans/definition"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// installDeadline is how long a task waits for a kind or an operator to be installed.
const installDeadline = 10 * time.Minute

// applyTask applies the objects of its templates, in the order of their kinds, and is
// done when all of them are healthy.
type applyTask struct{}

func (applyTask) assess(w *work) Finding {
	objects, err := w.objects(w.spec.Resources)
	if err != nil {
		return unrenderable(err)
	}
	return w.apply(objects)
}

// apply applies objects. Namespaces and CustomResourceDefinitions must be healthy
// before the others are applied, and objects of a hook before those of a greater weight.
func (w *work) apply(objects []*unstructured.Unstructured) Finding {
	f := Finding{}
	founded := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return !object.IsFoundation(u) })
	var before *unstructured.Unstructured
	for i, u := range objects {
		if (i == founded || before != nil && w.spec.Hook != "" && weight(before) != weight(u)) && !f.IsDone() {
			return f
		}
		w.applyOne(&f, u)
		before = u
	}
	return f
}

func (w *work) applyOne(f *Finding, u *unstructured.Unstructured) {
	scope, known := w.scope(f, u)
	switch {
	case !known:
		return
	case scope == object.NoSuchKind:
		w.unserved(f, u)
		return
	}
	w.enhance(u, scope)
	ref := object.RefOf(u)
	if w.o.Hidden.In(ref.Name) != ref.Name {
		f.Fatal = "the name of a " + ref.Kind + " would have the value of a parameter from a Secret; names stand in the status: take another"
		return
	}
	live, read := w.live(f, ref)
	if !read {
		return
	}
	f.Applies = append(f.Applies, ref)
	w.compare(f, ref, u, live)
}

// unserved is what becomes of an object of a kind that the API server does not serve. One
// that was served once will not be again; one that has yet to be installed is waited for,
// but not for ever, because the plan locks the Instance.
func (w *work) unserved(f *Finding, u *unstructured.Unstructured) {
	gvk := u.GroupVersionKind()
	if advice := object.RetiredAdvice(gvk); advice != "" {
		f.Fatal = fmt.Sprintf("%s cannot be applied: %s", object.RefOf(u), advice)
		return
	}
	f.Deadline = installDeadline
	if others := w.o.Served[gvk.GroupKind()]; len(others) > 0 {
		f.Failed = fmt.Sprintf("unknown version %s of kind %s; the API server serves %s", gvk.GroupVersion(), gvk.Kind, strings.Join(others, ", "))
		return
	}
	f.Failed = fmt.Sprintf("unknown kind %s; install its CustomResourceDefinition", gvk.GroupKind())
}

// compare decides what to do about one object.
func (w *work) compare(f *Finding, ref object.Ref, u, live *unstructured.Unstructured) {
	w.track(u, live)
	w.keepMarks(u, live)
	inTemplate := takePermission(u)
	switch {
	case live == nil && w.hasRun(ref):
	case live == nil:
		w.write(f, ref, u, live)
	case w.ranWhileGoing(live):
		w.noteRun(f, ref, live)
	case live.GetDeletionTimestamp() != nil:
		f.lackf("waiting for the old %s to be deleted%s", ref, holders(live))
	case w.adopts(f, ref, u, live, inTemplate) && !w.runsAgain(f, ref, u, live):
		w.retryChild(u, live)
		w.write(f, ref, u, live)
	}
}

// write applies an object unless it is applied already; one that the API server has refused to
// change as wanted it replaces, if that is permitted.
func (w *work) write(f *Finding, ref object.Ref, u, live *unstructured.Unstructured) {
	apply := write.Write{Act: write.Apply, Ref: ref, Object: u, Execution: w.Execution.UID}
	var err error
	if apply.Generate, err = generated(u, live); err != nil {
		f.Fatal = err.Error()
		return
	}
	if live == nil {
		f.Writes = append(f.Writes, apply)
		return
	}
	switch refusal, _ := w.o.Refusals.Of(&apply); {
	case refusal.Immutable != "" && refusal.Immutable == live.GetUID():
		w.replace(f, ref, u, live, refusal.Reason)
	case !w.isApplied(live) || len(apply.Generate) > 0:
		if w.breaks(f, &apply, live) {
			return
		}
		apply.TakeOver = object.Takeover(live, write.FieldOwner(w.o.Instance.Name))
		f.Writes = append(f.Writes, apply)
	default:
		w.await(f, ref, live)
	}
}

// breaks reports whether a CustomResourceDefinition must not be changed as wanted, or not yet:
// objects that exist would be invalid.
func (w *work) breaks(f *Finding, apply *write.Write, live *unstructured.Unstructured) bool {
	if apply.Ref.GroupKind() != object.CRDKind || !definition.IsNarrowed(live, apply.Object) {
		return false
	}
	sent := apply.Sent()
	result, isChecked := w.o.Definitions[sent]
	switch {
	case !isChecked:
		f.Needs.definition(sent, definition.Change{Live: live, Wanted: apply.Object, Owns: w.o.IsOwned})
	case result.Breaks != "":
		f.Fatal = fmt.Sprintf("%s cannot be changed: %s", apply.Ref, result.Breaks)
	default:
		apply.Unchecked = result.Unchecked
		return false
	}
	return true
}

// await records what the object waits for.
func (w *work) await(f *Finding, ref object.Ref, live *unstructured.Unstructured) {
	v := w.o.judge(ref, live, &f.Needs)
	w.noteRun(f, ref, live)
	switch {
	case v.fatal != "":
		f.Fatal = v.fatal
	case v.lacks != "":
		f.lackf("%s", v.lacks)
	}
}

// isApplied is true of an object that this step has applied, or another step of the
// same execution that did not start before it.
func (w *work) isApplied(live *unstructured.Unstructured) bool {
	a := live.GetAnnotations()
	if a[vocabulary.ExecutionAnnotation] != string(w.Execution.UID) {
		return false
	}
	phase, step := a[vocabulary.PhaseAnnotation], a[vocabulary.StepAnnotation]
	if phase == w.phase && step == w.step {
		return true
	}
	mine, other := w.StartedAt(w.phase, w.step), w.StartedAt(phase, step)
	return mine != nil && other != nil && !other.Before(mine)
}

// track lets the config ring roll a workload when its config changes. A workload that
// KUDO has applied is left as it is until its Pods are replaced anyway.
func (w *work) track(u, live *unstructured.Unstructured) {
	switch u.GroupVersionKind().GroupKind() {
	case object.DeploymentKind, object.StatefulSetKind, object.DaemonSetKind:
	default:
		return
	}
	annotations := u.GetAnnotations()
	_, _, set := vocabulary.ConfigTracked.Lookup(annotations)
	if set || skipsHash(u) || live != nil && vocabulary.ConfigTracked.Get(live.GetAnnotations()) == "" && !w.replacesPods(live) {
		return
	}
	annotations[vocabulary.ConfigTracked.Native] = "true"
	u.SetAnnotations(annotations)
}

// keepMarks keeps KUDO's config hash on Pod templates, so that no Pod is replaced to remove it,
// and the version on that of a Job, which cannot change: a Job that differs in nothing else stays.
func (w *work) keepMarks(u, live *unstructured.Unstructured) {
	if live == nil {
		return
	}
	isJob := u.GroupVersionKind().GroupKind() == object.JobKind
	for mark, isKept := range map[string]bool{
		vocabulary.DependenciesHash: isJob || !w.replacesPods(live), vocabulary.OperatorVersionAnnotation: isJob,
	} {
		if value, ok := templateAnnotations(live)[mark]; ok && isKept {
			_ = unstructured.SetNestedField(u.Object, value, "spec", "template", "metadata", "annotations", mark) // [work.enhance] made the maps
		}
	}
}

// replacesPods is true if the Pods of a workload are of another OperatorVersion.
func (w *work) replacesPods(live *unstructured.Unstructured) bool {
	return templateAnnotations(live)[vocabulary.OperatorVersionAnnotation] != w.Version.Spec.Version
}

func skipsHash(u *unstructured.Unstructured) bool {
	_, _, skips := vocabulary.SkipHashCalculation.Lookup(u.GetAnnotations())
	_, _, inTemplate := vocabulary.SkipHashCalculation.Lookup(templateAnnotations(u))
	return skips || inTemplate
}

func templateAnnotations(u *unstructured.Unstructured) map[string]string {
	annotations, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "annotations")
	return annotations
}
