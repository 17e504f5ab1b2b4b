package plans

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// applyTask applies the objects of its templates, in the order of their kinds,
// and is done when all of them are healthy.
type applyTask struct{}

func (applyTask) look(w *work) finding {
	objects, err := w.objects(w.spec.Resources)
	if err != nil {
		return fatal("%s", err)
	}
	return w.apply(objects)
}

// apply brings objects about. What others live in, or are of the kind of, has to
// be there before the others are applied.
func (w *work) apply(objects []*unstructured.Unstructured) finding {
	f := finding{}
	founded := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return !isFoundation(u) })
	for i, u := range objects {
		if i == founded && !f.isDone() {
			return f
		}
		w.applyOne(&f, u)
	}
	return f
}

func (w *work) applyOne(f *finding, u *unstructured.Unstructured) {
	scope, known := w.scope(f, u)
	switch {
	case !known:
		return
	case scope == NoSuchKind:
		f.failed = fmt.Sprintf("the API server knows no %s; install its CustomResourceDefinition", u.GroupVersionKind().GroupKind())
		return
	}
	w.enhance(u, scope)
	ref := refOf(u)
	live, seen := w.live(f, ref)
	if !seen {
		return
	}
	f.applies = append(f.applies, ref)
	w.compare(f, ref, u, live)
}

// compare says what has to be done for one object.
func (w *work) compare(f *finding, ref Ref, u, live *unstructured.Unstructured) {
	w.track(u, live)
	w.keepHash(u, live)
	switch {
	case live == nil:
		w.write(f, ref, u, live)
	case live.GetDeletionTimestamp() != nil:
		f.lackf("waiting for the old %s to be gone", ref)
	case !w.o.isOurs(live) && !mayAdopt(u, live):
		f.blocked = w.foreign(ref)
	case w.hasToBeRecreated(ref, u, live):
		f.writes = append(f.writes, Write{Act: Delete, Ref: ref, UID: live.GetUID()})
	case w.isImmutable(ref, live):
		f.fatal = fmt.Sprintf("%s has a field that cannot be changed (%s); annotate it in its template with %s=recreate to have it replaced",
			ref, w.o.Refusals[ref].Reason, vocabulary.OnImmutable.Native)
	case !w.isApplied(live) || w.lacksKeys(u, live):
		w.write(f, ref, u, live)
	default:
		w.await(f, ref, live)
	}
}

// lacksKeys is true of a Secret that has no value yet for what is generated.
func (w *work) lacksKeys(u, live *unstructured.Unstructured) bool {
	keys, err := generated(u, live)
	return err != nil || len(keys) > 0
}

func (w *work) write(f *finding, ref Ref, u, live *unstructured.Unstructured) {
	write := Write{Act: Apply, Ref: ref, Object: u}
	generate, err := generated(u, live)
	if err != nil {
		f.fatal = err.Error()
		return
	}
	write.Generate = generate
	if live != nil {
		write.TakeOver = takeover(live, FieldOwner(w.o.Instance.Name))
	}
	f.writes = append(f.writes, write)
}

// await notes what the object lacks.
func (w *work) await(f *finding, ref Ref, live *unstructured.Unstructured) {
	v := w.judge(ref, live, &f.needs)
	switch {
	case v.fatal != "":
		f.fatal = v.fatal
	case v.lacks != "":
		f.lackf("%s", v.lacks)
	}
}

func (w *work) foreign(ref Ref) *rollout.Block {
	return &rollout.Block{Reason: ReasonForeign, Message: fmt.Sprintf(
		"%s is there already and does not belong to Instance %s; annotate it with %s=true to have it taken over",
		ref, w.o.Instance.Name, vocabulary.Adopt.Native)}
}

func mayAdopt(u, live *unstructured.Unstructured) bool {
	return vocabulary.Adopt.Get(u.GetAnnotations()) == "true" || vocabulary.Adopt.Get(live.GetAnnotations()) == "true"
}

// isImmutable is true of an object that cannot become what it should be. One that
// somebody has made in its place meanwhile is another matter.
func (w *work) isImmutable(ref Ref, live *unstructured.Unstructured) bool {
	return live.GetUID() != "" && w.o.Refusals[ref].Immutable == live.GetUID()
}

func (w *work) hasToBeRecreated(ref Ref, u, live *unstructured.Unstructured) bool {
	return w.isImmutable(ref, live) && vocabulary.OnImmutable.Get(u.GetAnnotations()) == "recreate"
}

// isApplied is true of an object that this step has applied, or another one of
// the same execution that did not begin before it.
func (w *work) isApplied(live *unstructured.Unstructured) bool {
	a := live.GetAnnotations()
	if a[vocabulary.ExecutionAnnotation] != string(w.run.execution.UID) {
		return false
	}
	phase, step := a[vocabulary.PhaseAnnotation], a[vocabulary.StepAnnotation]
	if phase == w.phase && step == w.step {
		return true
	}
	mine, other := w.run.step(w.phase, w.step), w.run.step(phase, step)
	return mine != nil && other != nil && mine.StartedAt != nil && other.StartedAt != nil && !other.StartedAt.Before(mine.StartedAt)
}

// track lets the config ring roll a workload when its config changes. One that the
// predecessor has applied is left to that until its Pods are replaced anyway.
func (w *work) track(u, live *unstructured.Unstructured) {
	switch u.GroupVersionKind().GroupKind() {
	case deploymentKind, statefulSetKind, daemonSetKind:
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

// replacesPods is true if the Pods of a workload were made by another version.
func (w *work) replacesPods(live *unstructured.Unstructured) bool {
	return templateAnnotations(live)[vocabulary.OperatorVersionAnnotation] != w.run.version.Version
}

// keepHash keeps the predecessor's hash of the config on Pod templates as it is, so
// that no Pod is replaced to lose it.
func (w *work) keepHash(u, live *unstructured.Unstructured) {
	if live == nil {
		return
	}
	kind := u.GroupVersionKind().GroupKind()
	hash, ok := templateAnnotations(live)[vocabulary.DependenciesHash]
	if !ok || kind != jobKind && w.replacesPods(live) {
		return
	}
	_ = unstructured.SetNestedField(u.Object, hash, "spec", "template", "metadata", "annotations", vocabulary.DependenciesHash) // [work.enhance] made the maps
}

func templateAnnotations(u *unstructured.Unstructured) map[string]string {
	annotations, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "annotations")
	return annotations
}

func skipsHash(u *unstructured.Unstructured) bool {
	_, _, skips := vocabulary.SkipHashCalculation.Lookup(u.GetAnnotations())
	_, _, inTemplate := vocabulary.SkipHashCalculation.Lookup(templateAnnotations(u))
	return skips || inTemplate
}

// generated are the keys of a Secret that need a value by chance.
func generated(u, live *unstructured.Unstructured) (map[string]int, error) {
	value := vocabulary.GenerateOnce.Get(u.GetAnnotations())
	if value == "" || u.GroupVersionKind().GroupKind() != secretKind {
		return nil, nil //nolint:nilnil // nothing to generate is no mistake
	}
	there := map[string]any{}
	if live != nil {
		there, _, _ = unstructured.NestedMap(live.Object, "data")
	}
	keys := map[string]int{}
	for entry := range strings.SplitSeq(value, ",") {
		key, length, _ := strings.Cut(strings.TrimSpace(entry), "=")
		n, err := strconv.Atoi(strings.TrimSpace(length))
		if err != nil || n < 1 || n > 1024 || key == "" {
			return nil, fmt.Errorf("Secret %s: annotation %s has to be keys with lengths from 1 to 1024 such as %q", //nolint:staticcheck // a kind
				u.GetName(), vocabulary.GenerateOnce.Native, "password=32, token=16")
		}
		if _, ok := there[key]; !ok {
			keys[key] = n
		}
	}
	return keys, nil
}
