package plans

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/render"
	"github.com/spillway-dev/spillway/rollout"
)

// task is a kind of task: the part of it that decides.
type task interface {
	// look says, from what was observed, what has to be done now, and what is
	// lacking until the task is done. It is asked again in each pass.
	look(w *work) finding
}

// tasks are the kinds that there are.
func tasks() map[string]task {
	return map[string]task{
		v1beta1.ApplyTask:        applyTask{},
		v1beta1.DeleteTask:       deleteTask{},
		v1beta1.ToggleTask:       toggleTask{},
		v1beta1.PipeTask:         pipeTask{},
		v1beta1.KudoOperatorTask: operatorTask{},
		v1beta1.DummyTask:        dummyTask{},
	}
}

// finding is how a task does. It is done if there is nothing in it.
type finding struct {
	// needs have to be looked at before the rest means anything.
	needs Needs
	// writes are to be made now, in this order.
	writes []Write
	// applies are the objects that it applies now or has applied; removes those
	// that it deletes.
	applies, removes []Ref
	// lacks is what it waits for, as what may follow "it is".
	lacks string
	// blocked is what somebody has to do first.
	blocked *rollout.Block
	// failed is what went wrong for the time being, fatal what did for good.
	failed, fatal string
}

func fatal(format string, args ...any) finding { return finding{fatal: fmt.Sprintf(format, args...)} }

func (f *finding) isDone() bool {
	return f.needs.IsEmpty() && len(f.writes) == 0 && f.lacks == "" && f.blocked == nil && f.failed == "" && f.fatal == ""
}

// lackf notes the first thing that is lacking.
func (f *finding) lackf(format string, args ...any) {
	if f.lacks == "" {
		f.lacks = fmt.Sprintf(format, args...)
	}
}

// Act is a kind of write.
type Act string

// The acts.
const (
	// Apply applies Object by server-side apply, as [FieldOwner] and by force.
	Apply Act = "Apply"
	// Delete deletes in the foreground what has UID.
	Delete Act = "Delete"
	// Extract reads files of the Pod that has UID and keeps them; see [Extraction].
	Extract Act = "Extract"
	// AddFinalizer and RemoveFinalizer are about the Instance's cleanup finalizer.
	AddFinalizer    Act = "AddFinalizer"
	RemoveFinalizer Act = "RemoveFinalizer"
	// Identify gives spec.planExecution, which has none, UID.
	Identify Act = "Identify"
	// ClearRequest removes spec.planExecution.
	ClearRequest Act = "ClearRequest"
)

// Write is something to do, once the status that permits it is written.
type Write struct {
	Act Act
	// Ref is the object.
	Ref Ref
	// Object is what to apply.
	Object *unstructured.Unstructured
	// Generate are keys of a Secret, and how long the value is that each of them
	// gets by chance if it has none. They are written by [GeneratedFieldOwner], so
	// that they stay when Object is applied again.
	Generate map[string]int
	// TakeOver is a JSON patch to make before Object is applied, nil for none; see
	// [takeover].
	TakeOver []byte
	// UID and ResourceVersion are preconditions, empty for none.
	UID             types.UID
	ResourceVersion string
	// Extraction is for Extract.
	Extraction *Extraction
	// Path is the task: phase, step and task; nil of writes to the Instance.
	Path rollout.Path
}

// run is an execution with all that its tasks need.
type run struct {
	o         *Observed
	execution *v1beta1.Execution
	version   *v1beta1.OperatorVersionSpec
	plan      *v1beta1.Plan
	keepsAll  bool
	values    map[string]any
	pipes     map[string]string
	status    *v1beta1.InstanceStatus
	// phases are those of the plan's status, as they come to be.
	phases []v1beta1.PhaseStatus
	// stages are the steps that are on their way, pruning is what comes after them.
	stages  []stage
	pruning *finding
}

// work is a task in its place of a plan.
type work struct {
	o                 *Observed
	run               *run
	phase, step, name string
	spec              v1beta1.TaskSpec
	// unseen is why something may not be looked at, empty if nothing may not.
	unseen string
}

// look finds out how a task of a step does.
func (r *run) look(phase, step, name string) finding {
	i := slices.IndexFunc(r.version.Tasks, func(t v1beta1.Task) bool { return t.Name == name })
	if i < 0 {
		return fatal("OperatorVersion %s has no task %s", r.execution.Spec.OperatorVersion.Name, name)
	}
	t := &r.version.Tasks[i]
	kind, ok := tasks()[t.Kind]
	if !ok {
		return fatal("task %s is of kind %q, which is none", name, t.Kind)
	}
	w := &work{o: r.o, run: r, phase: phase, step: step, name: name, spec: t.Spec}
	f := w.honest(kind.look(w))
	for i := range f.writes {
		f.writes[i].Path = rollout.Path{phase, step, name}
	}
	return f
}

// honest is a finding that rests on all that it takes: where something may not be
// looked at, nothing is done.
func (w *work) honest(f finding) finding {
	if w.unseen == "" || f.fatal != "" {
		return f
	}
	return finding{needs: f.needs, failed: w.unseen}
}

// context is what the templates of the task can refer to.
func (w *work) context() render.Context {
	v := w.run.version
	return render.Context{
		Name: w.o.Instance.Name, Namespace: w.o.Instance.Namespace,
		OperatorName: v.Operator.Name, OperatorVersion: v.Version, AppVersion: v.AppVersion,
		PlanName: w.run.execution.Plan, PhaseName: w.phase, StepName: w.step,
		Params: w.run.values, Pipes: w.run.pipes,
	}
}

// text is a template after it was rendered.
func (w *work) text(name string) (string, error) {
	template, ok := w.run.version.Templates[name]
	if !ok {
		return "", fmt.Errorf("OperatorVersion %s has no template %s", w.run.execution.Spec.OperatorVersion.Name, name)
	}
	return render.Render(name, template, w.context())
}

// objects are those of the templates. Of an object that is there twice the last
// one counts, as it would if all were applied in turn.
func (w *work) objects(templates []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range templates {
		text, err := w.text(name)
		if err != nil {
			return nil, err
		}
		objects, err := parseDocuments(text)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", name, err)
		}
		for _, u := range objects {
			all = append(slices.DeleteFunc(all, func(other *unstructured.Unstructured) bool { return isTwice(other, u) }), u)
		}
	}
	sortDocuments(all)
	return all, nil
}

func isTwice(a, b *unstructured.Unstructured) bool {
	return refOf(a).same(refOf(b))
}

// scope is where a kind lives; of one that nobody has looked up it notes that.
func (w *work) scope(f *finding, u *unstructured.Unstructured) (Scope, bool) {
	if isFoundation(u) {
		return ClusterScoped, true
	}
	gvk := u.GroupVersionKind()
	scope, ok := w.o.Kinds[gvk.GroupKind()]
	if !ok {
		f.needs.kind(gvk)
	}
	return scope, ok
}

// live is an object as it is, nil if it is not there; of one that nobody has
// looked at it notes that.
func (w *work) live(f *finding, ref Ref) (*unstructured.Unstructured, bool) {
	if why, ok := w.o.Unseen[ref]; ok {
		w.unseen = why
		return nil, false
	}
	live, ok := w.o.Objects[ref]
	if !ok {
		f.needs.object(ref)
	}
	return live, ok
}
