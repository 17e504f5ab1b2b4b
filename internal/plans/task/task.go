package task

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/rollout"
)

// Run is an execution of a plan, as its tasks see it.
type Run struct {
	Snapshot  *Snapshot
	Execution *v1beta1.Execution
	// Version is the content that the execution began with.
	Version *choice.Version
	// Values are the parameters as templates see them.
	Values map[string]any
	// Gates are those that the Instance names, of all its plans.
	Gates []choice.Gate
	// StartedAt is when a step began, nil if it has not.
	StartedAt func(phase, step string) *metav1.MicroTime
}

// Assess decides what a task of a step needs.
func (r *Run) Assess(phase, step, name string) Finding {
	tasks := r.Version.Spec.Tasks
	i := slices.IndexFunc(tasks, func(t v1beta1.Task) bool { return t.Name == name })
	if i < 0 {
		return fatal("OperatorVersion %s has no task %s", r.Execution.Spec.OperatorVersion.Name, name)
	}
	kind, ok := kinds()[tasks[i].Kind]
	if !ok {
		return fatal("task %s: unknown kind %s", name, message.Quote(tasks[i].Kind))
	}
	w := &work{Run: r, o: r.Snapshot, phase: phase, step: step, name: name, spec: tasks[i].Spec}
	f := w.checked(kind.assess(w))
	for i := range f.Writes {
		f.Writes[i].Path, f.Writes[i].Execution = rollout.Path{phase, step, name}, r.Execution.UID
	}
	f.hide(r.Snapshot.Hidden)
	return f
}

// kind is a kind of task.
type kind interface {
	// assess decides, from the snapshot, what must be done now and what the task waits
	// for. It is called again in each pass.
	assess(w *work) Finding
}

func kinds() map[string]kind {
	return map[string]kind{
		v1beta1.ApplyTask:        applyTask{},
		v1beta1.DeleteTask:       deleteTask{},
		v1beta1.ToggleTask:       toggleTask{},
		v1beta1.PipeTask:         pipeTask{},
		v1beta1.KudoOperatorTask: operatorTask{},
		v1beta1.DummyTask:        dummyTask{},
	}
}

// Finding is the state of a task. The task is done if the finding is empty.
type Finding struct {
	// Needs must be read before the rest means anything.
	Needs Needs
	// Writes are to be made now, in this order.
	Writes []write.Write
	// Applies are the objects that it applies now or has applied; Removes those that it
	// deletes.
	Applies, Removes []object.Ref
	// Completed are Jobs that are complete and may be removed, with the step that applied them; see
	// [v1beta1.InventoryEntry].
	Completed map[object.Ref]string
	// Lacks is what it waits for, as a clause: "waiting for Deployment app: not ready".
	Lacks string
	// Blocked is what a user must do first.
	Blocked *rollout.Block
	// Left are objects of others that it would have deleted, with the reason for leaving them.
	Left []string
	// Failed is why it failed, to be tried again; Fatal why it failed for good.
	Failed, Fatal string
	// Deadline is how long Failed may last before it counts as failed for good; zero if
	// it may last for ever.
	Deadline time.Duration
}

func fatal(format string, args ...any) Finding { return Finding{Fatal: fmt.Sprintf(format, args...)} }

// unrenderable is what becomes of a task of which a template cannot be rendered: it has
// failed for good, unless that is not the template's fault.
func unrenderable(err error) Finding {
	if errors.Is(err, render.ErrUnavailable) {
		return Finding{Failed: err.Error()}
	}
	return Finding{Fatal: err.Error()}
}

// IsDone is true if there is nothing left to do or to wait for.
func (f *Finding) IsDone() bool {
	return f.Needs.IsEmpty() && len(f.Writes) == 0 && f.Lacks == "" && f.Blocked == nil && f.Failed == "" && f.Fatal == ""
}

// lackf records the first thing that is lacking.
func (f *Finding) lackf(format string, args ...any) {
	if f.Lacks == "" {
		f.Lacks = fmt.Sprintf(format, args...)
	}
}

// work is a task in its place in a plan.
type work struct {
	*Run

	o                 *Snapshot
	phase, step, name string
	spec              v1beta1.TaskSpec
	// forbidden is why something must not be read, empty if everything may be; impossible is
	// why something cannot exist or be asked for.
	forbidden, impossible string
}

// checked discards a finding that was made without something that must not or cannot be read:
// then nothing is done.
func (w *work) checked(f Finding) Finding {
	switch {
	case f.Fatal != "":
		return f
	case w.impossible != "":
		return fatal("%s", w.impossible)
	case w.forbidden != "":
		return Finding{Needs: f.Needs, Failed: w.forbidden}
	default:
		return f
	}
}

// MaxObjects is how many objects an Instance may have: its status lists them.
const MaxObjects = 1000

// objects are those of the templates. Where two templates contain the same object,
// the last one counts, as it would if all were applied in turn.
func (w *work) objects(templates []string) ([]*unstructured.Unstructured, error) {
	if w.spec.Chart == "" {
		return w.named("", templates)
	}
	others, err := w.named("", templates)
	if err != nil {
		return nil, err
	}
	all, err := w.charted()
	return append(all, others...), err
}

// named are the objects of the templates. One without a name gets the default.
func (w *work) named(defaultName string, templates []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range templates {
		text, err := w.template(name)
		if err != nil {
			return nil, err
		}
		objects, err := w.o.Rendered.Objects(name, text, w.context(), defaultName)
		if err != nil {
			return nil, err
		}
		if len(all)+len(objects) > MaxObjects {
			return nil, fmt.Errorf("template %s makes too many objects: an Instance may have %d", name, MaxObjects)
		}
		for _, u := range objects {
			all = append(slices.DeleteFunc(all, func(other *unstructured.Unstructured) bool {
				return object.RefOf(other).Same(object.RefOf(u))
			}), u)
		}
	}
	object.Sort(all)
	return all, nil
}

// template is the text of a template.
func (w *work) template(name string) (string, error) {
	template, ok := w.Version.Spec.Templates[name]
	if !ok {
		return "", fmt.Errorf("OperatorVersion %s has no template %s", w.Execution.Spec.OperatorVersion.Name, name)
	}
	return template, nil
}

// context is what the templates of the task can refer to.
func (w *work) context() render.Context {
	v := w.Version.Spec
	return render.Context{
		Name: w.o.Instance.Name, Namespace: w.o.Instance.Namespace,
		OperatorName: v.Operator.Name, OperatorVersion: v.Version, AppVersion: v.AppVersion,
		PlanName: w.Execution.Plan, PhaseName: w.phase, StepName: w.step,
		Params: w.Values, Pipes: pipesOf(w.o.Instance.Name, w.Execution.Plan, v),
	}
}

// scope is where a kind lives; what is not known it needs.
func (w *work) scope(f *Finding, u *unstructured.Unstructured) (object.Scope, bool) {
	gvk := u.GroupVersionKind()
	if object.IsFoundation(u) && gvk.Version == "v1" {
		return object.ClusterScoped, true
	}
	scope, ok := w.o.Kinds[gvk]
	if !ok {
		f.Needs.kind(gvk)
	}
	return scope, ok
}

// served is scope for an object that is only to be found: one whose version is no longer
// served gets the version that is served instead, in which it is the same object.
func (w *work) served(f *Finding, u *unstructured.Unstructured) (object.Scope, bool) {
	scope, known := w.scope(f, u)
	if to, isRetired := object.Successor(u.GroupVersionKind()); known && scope == object.NoSuchKind && isRetired && !to.Empty() {
		u.SetAPIVersion(to.String())
		return w.scope(f, u)
	}
	return scope, known
}

// live is an object as it was read, nil if it does not exist; one that was not read
// it needs.
func (w *work) live(f *Finding, ref object.Ref) (u *unstructured.Unstructured, read bool) {
	if why, ok := w.o.Forbidden[ref]; ok {
		w.forbidden = why
		return nil, false
	}
	if why := cmp.Or(w.o.Impossible[ref], ref.Problem()); why != "" {
		w.impossible = why
		return nil, false
	}
	live, ok := w.o.Objects[ref]
	if !ok {
		f.Needs.object(ref)
	}
	return live, ok
}
