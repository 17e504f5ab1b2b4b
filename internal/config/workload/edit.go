package workload

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Patch is a JSON patch with its preconditions as test operations.
type Patch struct {
	// Object is the one to patch, empty except for its name.
	Object     client.Object
	Operations []Operation
}

// Operation is one operation of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const (
	annotations         = "/metadata/annotations"
	templateAnnotations = "/spec/template/metadata/annotations"
	templateScheduler   = "/spec/template/spec/schedulerName"
	templateGates       = "/spec/template/spec/schedulingGates"
)

// Edit collects the operations on one workload.
type Edit struct {
	w   *Workload
	ops []Operation
	// annotated is true once the workload is sure to have annotations.
	annotated bool
	// hash is the one that it sets, empty if it sets none.
	hash string
}

// EditStored begins with the precondition of every write: the workload has the
// uid, the spec and the opt-in for which the write was decided.
func EditStored(w *Workload) *Edit {
	e := &Edit{w: w}
	e.test("/metadata/uid", w.UID)
	e.test("/metadata/generation", w.Generation)
	switch {
	case !w.Settings.Tracked:
	case w.Settings.TrackedBy == "":
		e.test(pointer(annotations, w.Settings.Dialect), isTrue)
	case e.hasAnnotations():
		for _, name := range vocabulary.ConfigTracked.Names() {
			e.test(pointer(annotations, name), nil)
		}
		e.testReloaded()
	}
	return e
}

// SetHash writes the hash of the present config into the Pod template.
func (e *Edit) SetHash(at time.Time) {
	e.SetTemplateHash(e.w.Template.HashName, e.w.Hashes.Desired)
	e.setSeen(at)
}

// SetTemplateHash writes a hash into the Pod template, as an annotation.
func (e *Edit) SetTemplateHash(annotation, hash string) {
	if !e.w.Template.Annotated {
		e.add(templateAnnotations, map[string]string{})
	}
	e.add(pointer(templateAnnotations, annotation), hash)
	e.hash = hash
}

// Record writes when and why the workload was rolled.
func (e *Edit) Record(roll Roll) {
	roll.Inputs, roll.Got, roll.Of = e.w.inputs, e.w.got(), markOf(content.Release{}, cmp.Or(e.hash, e.w.Template.Hash))
	e.annotate(vocabulary.ConfigChange, encode(roll))
}

// SetCondition writes the condition, or removes it if there is none.
func (e *Edit) SetCondition(c *Condition) {
	switch {
	case c.Equal(e.w.Records.Condition):
	case c != nil:
		e.annotate(vocabulary.ConfigStatus, encode(c))
	default:
		e.drop(vocabulary.ConfigStatus)
	}
}

// DropFailed removes what an earlier manager has recorded on the workload of its failures.
func (e *Edit) DropFailed() { e.drop(vocabulary.ConfigFailed) }

// SetBaseline records on the workload that the hash on the template, or none, means the present config.
func (e *Edit) SetBaseline(at time.Time) {
	e.SetInputs(at)
	e.annotate(vocabulary.ConfigBaseline, e.w.adoption().String())
}

// SetInputs records of an adopted workload what the hash of its config was computed from, and what counted for it.
func (e *Edit) SetInputs(at time.Time) {
	if e.w.Template.Hash == "" {
		e.Record(e.w.Records.Roll)
	}
	e.setSeen(at)
}

// DropBaseline removes the baseline: the hash on the template changes, or it is recorded elsewhere.
func (e *Edit) DropBaseline() { e.drop(vocabulary.ConfigBaseline) }

// Suspend prevents Pods of the workload from being scheduled.
func (e *Edit) Suspend(by SuspendBy) {
	switch by {
	case SuspendNot:
	case SuspendByScheduler:
		e.add(pointer(annotations, vocabulary.SchedulingDisabled.Aliases[0]), e.w.Template.Scheduler)
		e.add(templateScheduler, vocabulary.SuspendedScheduler)
	default:
		gate := map[string]string{"name": vocabulary.SchedulingGate}
		e.annotate(vocabulary.Suspended, vocabulary.SuspendedByGate)
		if e.w.Template.Gates == 0 {
			e.add(templateGates, []any{gate})
		} else {
			e.add(templateGates+"/-", gate)
		}
	}
}

// Release lets Pods of the workload be scheduled.
func (e *Edit) Release() {
	s := e.w.Suspension
	if s.Gate > 0 {
		gate := index(templateGates, s.Gate-1)
		e.test(gate+"/name", vocabulary.SchedulingGate)
		e.do("remove", gate, nil)
	}
	if s.Scheduler {
		e.do("replace", templateScheduler, s.Restore)
	}
	e.drop(vocabulary.SchedulingDisabled)
	if keepsWaitingPods(e.w.Object) {
		e.annotate(vocabulary.Suspended, vocabulary.SuspendedPods)
	} else {
		e.drop(vocabulary.Suspended)
	}
}

// DropMarks removes the annotations that say that the workload is suspended.
func (e *Edit) DropMarks() {
	e.drop(vocabulary.Suspended)
	e.drop(vocabulary.SchedulingDisabled)
}

// Disown removes what old versions of wave wrote, so that deleting a workload does
// not delete its config. The finalizer is removed last, because it is what shows
// that there is something to remove.
func Disown(w *Workload) []Patch {
	var patches []Patch
	for _, owned := range slices.Backward(w.Legacy.Owns) { // so that places keep their meaning
		patches = append(patches, owned.release())
	}
	e := EditUnstored(w)
	e.test("/metadata/uid", w.UID)
	if i := slices.Index(w.Object.GetFinalizers(), vocabulary.ConfigFinalizer); i >= 0 {
		e.test(index("/metadata/finalizers", i), vocabulary.ConfigFinalizer)
		e.do("remove", index("/metadata/finalizers", i), nil)
	}
	return append(patches, e.Patch())
}

// EditUnstored edits a workload in a request, whose answer needs no precondition.
func EditUnstored(w *Workload) *Edit { return &Edit{w: w} }

// release removes the owner reference, if it is still where it was seen.
func (o Owned) release() Patch {
	object := o.Kind.New()
	object.SetNamespace(o.Namespace)
	object.SetName(o.Name)
	at := index("/metadata/ownerReferences", o.Index)
	return Patch{Object: object, Operations: []Operation{
		{Op: "test", Path: at + "/uid", Value: o.UID},
		{Op: "remove", Path: at},
	}}
}

// Patch is the operations with the object to apply them to.
func (e *Edit) Patch() Patch {
	object := New(e.w.Kind)
	object.SetNamespace(e.w.Namespace)
	object.SetName(e.w.Name.Name)
	return Patch{Object: object, Operations: e.ops}
}

// Operations are those collected.
func (e *Edit) Operations() []Operation { return e.ops }

func (e *Edit) annotate(key vocabulary.Key, value string) {
	if !e.annotated && !e.hasAnnotations() {
		e.add(annotations, map[string]string{})
	}
	e.annotated = true
	e.add(pointer(annotations, key.Native), value)
}

// hasAnnotations is true if the stored workload has any: one that a policy tracks was read with one more.
func (e *Edit) hasAnnotations() bool {
	n := len(e.w.Object.GetAnnotations())
	if e.w.Settings.TrackedBy != "" {
		n--
	}
	return n > 0
}

// drop removes one of our annotations if the workload has it.
func (e *Edit) drop(key vocabulary.Key) {
	if _, name, ok := key.Lookup(e.w.Object.GetAnnotations()); ok {
		e.do("remove", pointer(annotations, name), nil)
	}
}

func (e *Edit) test(path string, value any) { e.do("test", path, value) }

func (e *Edit) add(path string, value any) { e.do("add", path, value) }

func (e *Edit) do(op, path string, value any) {
	e.ops = append(e.ops, Operation{Op: op, Path: path, Value: value})
}

// pointer is the JSON pointer to a key of the map at path.
func pointer(path, key string) string { return path + "/" + pointerEscapes.Replace(key) }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// index is the JSON pointer to an element of the list at path.
func index(path string, i int) string { return path + "/" + strconv.Itoa(i) }
