package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Write is one intended change of a workload.
type Write struct {
	Workload *Workload
	// Rolls is true if it changes the Pod template.
	Rolls bool
	// Patches are made one after the other; the first that fails ends the write.
	Patches []Patch
	// Frees are waiting Pods to delete, so that they come back free.
	Frees []WaitingPod
	// Events are sent once all patches are made.
	Events []Event
}

// Patch is a JSON patch with its preconditions as test operations.
type Patch struct {
	// Object is the one to patch, empty but for its name.
	Object     client.Object
	Operations []operation
}

// Event is something to tell whoever looks at the workload.
type Event struct {
	Type   string
	Reason rollout.Reason
	Note   string
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

const (
	annotations         = "/metadata/annotations"
	templateAnnotations = "/spec/template/metadata/annotations"
	templateScheduler   = "/spec/template/spec/schedulerName"
	templateGates       = "/spec/template/spec/schedulingGates"
)

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is the JSON pointer to a key of the map at path.
func pointer(path, key string) string { return path + "/" + pointerEscapes.Replace(key) }

// edit collects the operations on one workload.
type edit struct {
	w   *Workload
	ops []operation
	// annotated is true once the workload is sure to have annotations.
	annotated bool
}

// editOf starts with the precondition of every write: the workload is the one,
// with the spec, for which it was decided.
func editOf(w *Workload) *edit {
	e := &edit{w: w}
	e.test("/metadata/uid", w.UID)
	e.test("/metadata/generation", w.Generation)
	if w.Settings.Tracked {
		e.test(pointer(annotations, w.Settings.Dialect), "true")
	}
	return e
}

func (e *edit) test(path string, value any) { e.do("test", path, value) }
func (e *edit) add(path string, value any)  { e.do("add", path, value) }
func (e *edit) do(op, path string, value any) {
	e.ops = append(e.ops, operation{Op: op, Path: path, Value: value})
}

// drop removes an annotation of ours if the workload has it.
func (e *edit) drop(key vocabulary.Key) {
	if _, name, ok := key.Lookup(e.w.object.GetAnnotations()); ok {
		e.do("remove", pointer(annotations, name), nil)
	}
}

func (e *edit) annotate(key vocabulary.Key, value string) {
	if !e.annotated && len(e.w.object.GetAnnotations()) == 0 {
		e.add(annotations, map[string]string{})
	}
	e.annotated = true
	e.add(pointer(annotations, key.Native), value)
}

func (e *edit) patch() Patch {
	object := emptyWorkload(e.w.Kind)
	object.SetNamespace(e.w.Namespace)
	object.SetName(e.w.Name.Name)
	return Patch{Object: object, Operations: e.ops}
}

// step is the write by which a workload moves.
func step(w *Workload, now time.Time) Write {
	if w.templateSettled() {
		return Write{Workload: w, Frees: w.Suspension.deletable()}
	}
	return roll(w, now)
}

// roll is the one write that a change costs a workload: the hash, the release
// if the predecessor had suspended it, and the record of what changed.
func roll(w *Workload, now time.Time) Write {
	write := Write{Workload: w, Rolls: true}
	e := editOf(w)
	if w.Suspension.suspended() {
		e.release()
		write.Events = append(write.Events, Event{corev1.EventTypeNormal, EventReleased, "Scheduling enabled: the config that the Pods wait for exists"})
	}
	if w.Settings.Tracked {
		e.hash()
		e.annotate(vocabulary.ConfigChange, encode(Roll{
			At: now.UTC().Truncate(time.Millisecond), Changed: shorten(w.Change.Keys), Template: templateDigest(w.object),
		}))
		write.Events = append(write.Events, Event{corev1.EventTypeNormal, EventChanged, "Configuration hash updated to " + w.Hashes.Desired})
	}
	e.drop(vocabulary.ConfigBaseline)
	e.conclude(now)
	write.Patches = []Patch{e.patch()}
	return write
}

func (e *edit) hash() { e.annotateTemplate(e.w.Template.HashName, e.w.Hashes.Desired) }

func (e *edit) annotateTemplate(name, value string) {
	if !e.w.Template.Annotated {
		e.add(templateAnnotations, map[string]string{})
	}
	e.add(pointer(templateAnnotations, name), value)
}

// suspend keeps Pods of the workload from being scheduled.
func (e *edit) suspend(by SuspendBy) {
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

// release lets Pods of the workload be scheduled.
func (e *edit) release() {
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
	if keepsWaitingPods(e.w.object) {
		e.annotate(vocabulary.Suspended, vocabulary.SuspendedPods)
	} else {
		e.drop(vocabulary.Suspended)
	}
}

// conclude brings the condition on the workload up to date.
func (e *edit) conclude(now time.Time) {
	c := e.w.condition(now)
	switch {
	case c.equal(e.w.Records.Condition):
	case c != nil:
		e.annotate(vocabulary.ConfigStatus, encode(c))
	default:
		e.drop(vocabulary.ConfigStatus)
	}
}

// record is the write that keeps the annotations of a workload true without
// touching its Pod template; none if they are.
func record(w *Workload, now time.Time) []Write {
	if w.Legacy.Finalizer {
		return []Write{disown(w)}
	}
	c := w.condition(now)
	concluded, adopts := c.equal(w.Records.Condition), w.current() && w.adopts()
	if concluded && !adopts && !w.overmarked() {
		return nil
	}
	write, e := Write{Workload: w}, editOf(w)
	e.conclude(now)
	if w.overmarked() {
		e.drop(vocabulary.Suspended)
		e.drop(vocabulary.SchedulingDisabled)
	}
	if !concluded {
		write.Events = conditionEvents(w, c)
	}
	if adopts {
		e.annotate(vocabulary.ConfigBaseline, Baseline{w.Template.Hash, w.Hashes.Desired}.String())
	}
	write.Patches = []Patch{e.patch()}
	return []Write{write}
}

// overmarked is true if annotations say that the workload is suspended, and
// neither it nor any of its Pods is.
func (w *Workload) overmarked() bool {
	annotations := w.object.GetAnnotations()
	marked := vocabulary.Suspended.Get(annotations) != "" || vocabulary.SchedulingDisabled.Get(annotations) != ""
	return marked && w.Suspension.settled()
}

func conditionEvents(w *Workload, c *Condition) []Event {
	if c == nil {
		return nil
	}
	events := []Event{{corev1.EventTypeWarning, c.Reason, c.Message}}
	if w.Suspension.suspended() && len(w.Missing) > 0 {
		events = append(events, Event{corev1.EventTypeNormal, EventSuspended, "Scheduling disabled until the config of the Pods exists: " + w.missing()})
	}
	return events
}

// disown undoes what old versions of the predecessor did, so that deleting a
// workload does not take its config with it. The finalizer goes last, because
// it is what says that there is something to undo.
func disown(w *Workload) Write {
	write := Write{Workload: w}
	for _, owned := range slices.Backward(w.Legacy.Owns) { // so that places keep their meaning
		write.Patches = append(write.Patches, owned.release())
	}
	e := &edit{w: w}
	e.test("/metadata/uid", w.UID)
	for i, f := range w.object.GetFinalizers() {
		if f == vocabulary.ConfigFinalizer {
			e.test(index("/metadata/finalizers", i), f)
			e.do("remove", index("/metadata/finalizers", i), nil)
			break
		}
	}
	write.Patches = append(write.Patches, e.patch())
	return write
}

// release removes the owner reference, if it is still where it was seen.
func (o Owned) release() Patch {
	object := emptyObject(o.Kind)
	object.SetNamespace(o.Namespace)
	object.SetName(o.Name)
	at := index("/metadata/ownerReferences", o.Index)
	return Patch{Object: object, Operations: []operation{
		{Op: "test", Path: at + "/uid", Value: o.UID},
		{Op: "remove", Path: at},
	}}
}

// index is the JSON pointer to an element of the list at path.
func index(path string, i int) string { return path + "/" + strconv.Itoa(i) }
