package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	// activeEvery and idleEvery are how often to look at what is not watched.
	activeEvery = 20 * time.Second
	idleEvery   = 5 * time.Minute
	// refusedAgain is when to look again at what could not be looked at.
	refusedAgain = time.Minute
	// brokenAgain is when to ask a cluster again to which the connection broke.
	brokenAgain = 2 * time.Second
)

// Act is what a write does.
type Act = assemblage.Act

// The acts, besides those on the ProxyAssemblage itself.
const (
	// Send applies the Assemblage on the cluster. To release it is to send it with
	// nothing in it.
	Send Act = "Send"
	// Delete deletes it there.
	Delete Act = "Delete"
	// Disown leaves it there with all that is in it, for the next owner. If the
	// cluster does not accept that, it is left as it is.
	Disown Act = "Disown"
)

// Write is an intended write.
type Write struct {
	Act Act
	// Object is what to send.
	Object *unstructured.Unstructured
	// UID and ResourceVersion are those of what is deleted, or sent over, as it was seen.
	UID             types.UID
	ResourceVersion string
}

// Plan is what to do next.
type Plan = assemblage.Plan[Write]

// decision is one run of [Decide].
type decision struct {
	o     *Observed
	plan  Plan
	needs map[binding.Object]bool
	// entries are the syncs to send, reports what became of each.
	entries []v1alpha1.NamedSync
	reports []outcome.Report
	// sent are the places in reports of those that are not on the cluster yet.
	sent []int
}

// Decide says what is to be done for a ProxyAssemblage. It is pure.
func Decide(o *Observed) Plan {
	d := &decision{o: o, needs: map[binding.Object]bool{}}
	d.plan.Status = o.Proxy.Status
	switch {
	case errors.Is(o.Problem, errBroken):
		d.wakeIn(brokenAgain)
	case errors.Is(o.Problem, errUnproven): // what it said last may well be true
	case o.Proxy.DeletionTimestamp != nil:
		d.end()
	case !d.hasFinalizer() && len(o.Proxy.Spec.Assemblage.Syncs) > 0:
		d.write(Write{Act: assemblage.AddFinalizer})
	default:
		d.each()
		d.send()
		d.report()
		d.retire()
	}
	d.plan.Needs = binding.Sorted(d.needs)
	return d.plan
}

// each evaluates the bindings of every sync separately.
func (d *decision) each() {
	syncs := d.o.Proxy.Spec.Assemblage.Syncs
	for i := range syncs {
		s := &syncs[i]
		if s.Source == nil && s.Found {
			d.leave(s)
			continue
		}
		if s.Source == nil {
			d.say(s, v1alpha1.StateWaiting, outcome.ReasonNotAssigned, "pins the cluster only; nothing is assigned")
			continue
		}
		entry, err := d.evaluate(s)
		if err != nil {
			d.keep(s, err)
			continue
		}
		d.entries = append(d.entries, entry)
		d.judge(s, &entry)
	}
}

// evaluate is a sync as it is sent: with its control-plane bindings as values.
func (d *decision) evaluate(s *v1alpha1.ProxySync) (v1alpha1.NamedSync, error) {
	cluster := agent.ClusterOf(d.o.Proxy.Spec.ClusterRef, d.o.Proxy.Spec.KubeconfigRef.Name)
	result := binding.Evaluate(agent.Bindings(s.ControlPlaneBindings), binding.Values{binding.ClusterName: cluster}, d.o.Known)
	for _, object := range result.Needs {
		d.needs[object] = true
	}
	entry := *s.NamedSync.DeepCopy()
	entry.Hold, entry.GivenUp, entry.Found = nil, nil, false // these are the hub's business
	used := used(&entry)
	for _, literal := range result.Values.Literal() {
		if used[literal.Name] {
			entry.Bindings = append(entry.Bindings, v1alpha1.Binding{Name: literal.Name, Value: &literal.Value})
		}
	}
	return entry, result.Err
}

// used are the names that a sync refers to, and does not bind itself.
func used(s *v1alpha1.NamedSync) map[string]bool {
	var texts []string
	if s.Package != nil && s.Package.Kustomize != nil {
		texts = slices.Collect(maps.Values(s.Package.Kustomize.Substitute))
	}
	if helm := fluxspec.HelmOf(s.Source, s.Package); helm != nil {
		texts = append(texts, fluxspec.Texts(helm.Values)...)
	}
	for _, b := range s.Bindings {
		if b.Value != nil {
			texts = append(texts, *b.Value)
		}
		if ref := b.ObjectFieldRef; ref != nil {
			texts = append(texts, ref.APIVersion, ref.Kind, ref.Name, ref.FieldPath)
		}
	}
	names := binding.Names(texts...)
	for _, b := range s.Bindings {
		delete(names, b.Name)
	}
	return names
}

// keep leaves a sync as it was sent, because it cannot be evaluated.
func (d *decision) keep(s *v1alpha1.ProxySync, err error) {
	if live := d.liveSync(s.Name); live != nil && d.isOurs() {
		kept := *live
		kept.DeletionPolicy = s.DeletionPolicy // this much of it is known, and the hub may rely on it
		d.entries = append(d.entries, kept)
	}
	state, reason, message := outcome.Unbound(err)
	if state == v1alpha1.StateFailed {
		d.wakeIn(refusedAgain)
	}
	d.say(s, state, reason, message)
}

// judge says what became of a sync that can be sent.
func (d *decision) judge(s *v1alpha1.ProxySync, entry *v1alpha1.NamedSync) {
	if state, reason, message := d.obstacle(); state != "" {
		d.say(s, state, reason, message)
		return
	}
	switch live := d.liveSync(s.Name); {
	case d.isFormer() && d.judgeFormer(s, entry):
	case live != nil && holds(live, entry):
		d.reports = append(d.reports, d.copied(s))
	case live != nil && d.merelyNames(s, live, entry):
		d.sent = append(d.sent, len(d.reports))
		d.reports = append(d.reports, d.former(s))
	default:
		d.sent = append(d.sent, len(d.reports))
		d.say(s, v1alpha1.StateUpdating, outcome.ReasonApplying, "sending to the cluster")
	}
}

// merelyNames is true if all that is sent is which commit it is that has succeeded there: a tag
// stands for it on the cluster so far.
func (d *decision) merelyNames(s *v1alpha1.ProxySync, live, entry *v1alpha1.NamedSync) bool {
	was := outcome.Find(&d.o.Proxy.Status, &s.Assignment)
	if was == nil || was.State != v1alpha1.StateSucceeded || !agent.Names(entry.Source, was.Resolved) {
		return false
	}
	same := *live
	same.Source = entry.Source
	return holds(&same, entry)
}

// copied is what the cluster says about a sync, if that is of the assignment that was
// sent. While it has not looked at the newest version of the Assemblage, what it said
// before stands.
func (d *decision) copied(s *v1alpha1.ProxySync) outcome.Report {
	r := outcome.Report{
		Assignment: &s.Assignment, State: v1alpha1.StateUpdating, Reason: outcome.ReasonApplying, Message: "the cluster has not observed it yet",
	}
	if d.o.Live.Status.ObservedGeneration != d.o.Live.Generation {
		if was := outcome.Find(&d.o.Proxy.Status, &s.Assignment); was != nil && was.State != v1alpha1.StateUnreachable {
			return d.former(s)
		}
		return r
	}
	if now := outcome.Find(&d.o.Live.Status, &s.Assignment); now != nil {
		r.State, r.Reason, r.Message, r.Resolved = now.State, rollout.Reason(now.Reason), now.Message, now.Resolved
	}
	return r
}

// send sends the Assemblage, unless it is as it should be.
func (d *decision) send() {
	if state, _, _ := d.obstacle(); state != "" || len(d.needs) > 0 {
		return
	}
	if len(d.entries) == 0 && !d.isOurs() {
		return // there is nothing to send, and nothing was
	}
	if d.isFormer() && (!d.isOurs() || d.isSame()) {
		return
	}
	u, err := d.object(d.entries, true)
	if err != nil {
		return // what came from the API server can be encoded
	}
	if d.isSent(u) {
		return
	}
	d.write(d.over(Write{Act: Send, Object: u}))
}

// retire deletes an orphaned ProxyAssemblage once the cluster has its last state. Of a
// cluster that does not answer that is not known.
func (d *decision) retire() {
	if state, _, _ := d.obstacle(); state == "" && d.o.Orphaned && len(d.plan.Writes) == 0 {
		d.write(Write{Act: assemblage.Retire})
	}
}

// isSent is true if the Assemblage has all that is sent, and nothing of what was sent
// before besides.
func (d *decision) isSent(u *unstructured.Unstructured) bool {
	if !d.isOurs() || vocabulary.AppliedHash.Get(d.o.Live.Annotations) != vocabulary.AppliedHash.Get(u.GetAnnotations()) {
		return false
	}
	for i := range d.entries {
		if live := d.liveSync(d.entries[i].Name); live == nil || !holds(live, &d.entries[i]) {
			return false
		}
	}
	return true
}

// end takes what was sent away, and then lets the ProxyAssemblage go.
func (d *decision) end() {
	if !d.hasFinalizer() {
		return
	}
	state, reason, message := d.obstacle()
	exists := d.o.Problem == nil && d.o.Refused == ""
	switch {
	case d.o.Lost, exists && !d.isOurs():
		d.write(Write{Act: assemblage.RemoveFinalizer})
	case vocabulary.AbandonCluster.Get(d.o.Proxy.Annotations) == "true":
		if exists {
			d.write(d.over(Write{Act: Disown}))
		}
		d.write(Write{Act: assemblage.RemoveFinalizer})
	case !exists:
		d.stuck(state, reason, message)
	case d.o.Live.DeletionTimestamp != nil:
		d.stuck(v1alpha1.StateUpdating, outcome.ReasonDeleting, "waiting for the Assemblage on the cluster to be deleted")
		d.poll(true)
	case vocabulary.AppliedHash.Get(d.o.Live.Annotations) != "":
		d.release(true)
	case len(d.o.Live.Spec.Syncs) == 0:
		d.write(Write{Act: Delete, UID: d.o.Live.UID, ResourceVersion: d.o.Live.ResourceVersion})
		d.stuckIfRefused()
	default: // others have syncs in it
		d.release(false)
	}
}

// release takes the syncs that were sent out of the Assemblage, and the mark as well if
// it is to stay for others.
func (d *decision) release(owned bool) {
	if u, err := d.object(nil, owned); err == nil {
		d.write(d.over(Write{Act: Send, Object: u}))
	}
	d.stuckIfRefused()
}

// obstacle is what keeps all syncs from being sent, if something does.
func (d *decision) obstacle() (state v1alpha1.State, reason rollout.Reason, message string) {
	name := d.o.Proxy.Spec.KubeconfigRef.Name
	switch {
	case d.o.Problem != nil:
		return outcome.Unusable(d.o.Problem, name)
	case d.o.Refused != "":
		return v1alpha1.StateWaiting, ReasonRefused, fmt.Sprintf("the cluster refuses the kubeconfig in Secret %s: %s", name, d.o.Refused)
	case d.o.KindMissing:
		return v1alpha1.StateWaiting, ReasonKindMissing, `the cluster does not know the kind Assemblage; run Spillway there with --rings=assemblage`
	case d.isForeign():
		return v1alpha1.StateFailed, outcome.ReasonForeign, "Assemblage " + d.o.Live.Name + " is written by another ProxyAssemblage; rename one of them, or take it over: " + d.toTakeOver()
	case d.o.Live != nil && d.o.Live.DeletionTimestamp != nil:
		return v1alpha1.StateWaiting, outcome.ReasonTerminating, "waiting for the old Assemblage " + d.o.Live.Name + " to be deleted"
	default:
		return "", "", ""
	}
}

func (d *decision) hasFinalizer() bool {
	return controllerutil.ContainsFinalizer(d.o.Proxy, vocabulary.AssemblageFinalizer)
}

// object is the Assemblage as it is sent.
func (d *decision) object(entries []v1alpha1.NamedSync, owned bool) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Assemblage"))
	u.SetNamespace(d.o.Proxy.Namespace)
	u.SetName(d.o.Proxy.Name)
	if owned {
		u.SetAnnotations(map[string]string{vocabulary.ProxiedBy.Native: string(d.o.Proxy.UID), vocabulary.ProxiedFor.Native: d.identity()})
	}
	if len(entries) == 0 {
		return u, nil
	}
	syncs := make([]any, 0, len(entries))
	for i := range entries {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entries[i])
		if err != nil {
			return nil, fmt.Errorf("encode sync %s: %w", entries[i].Name, err)
		}
		syncs = append(syncs, content)
	}
	u.Object["spec"] = map[string]any{"syncs": syncs}
	annotations := u.GetAnnotations()
	annotations[vocabulary.SentSyncs.Native] = namesOf(entries)
	if given := d.givenUp(); given != "" {
		annotations[vocabulary.GivenUp.Native] = given
	}
	u.SetAnnotations(annotations)
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode Assemblage: %w", err)
	}
	annotations[vocabulary.AppliedHash.Native] = agent.Hash(raw)
	u.SetAnnotations(annotations)
	return u, nil
}

// namesOf are the names of syncs, in order.
func namesOf(entries []v1alpha1.NamedSync) string {
	names := make([]string, len(entries))
	for i := range entries {
		names[i] = entries[i].Name
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// over is a write over what was seen.
func (d *decision) over(w Write) Write {
	if d.o.Live != nil {
		w.UID = d.o.Live.UID
	}
	return w
}

// former is what was said of a sync before.
func (d *decision) former(s *v1alpha1.ProxySync) outcome.Report {
	was := outcome.Find(&d.o.Proxy.Status, &s.Assignment)
	return outcome.Report{Assignment: &s.Assignment, State: was.State, Reason: rollout.Reason(was.Reason), Message: was.Message, Resolved: was.Resolved}
}

func (d *decision) liveSync(name string) *v1alpha1.NamedSync {
	if d.o.Live == nil {
		return nil
	}
	for i := range d.o.Live.Spec.Syncs {
		if d.o.Live.Spec.Syncs[i].Name == name {
			return &d.o.Live.Spec.Syncs[i]
		}
	}
	return nil
}

// holds is true if a sync on the cluster has all that was sent.
func holds(live, sent *v1alpha1.NamedSync) bool {
	a, errA := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	b, errB := runtime.DefaultUnstructuredConverter.ToUnstructured(sent)
	return errA == nil && errB == nil && equality.Semantic.DeepEqual(a, b)
}

// wakeIn has it looked at again after a time, a little sooner or later.
func (d *decision) wakeIn(t time.Duration) {
	jitter := 0.8 + 0.4*d.o.Chance
	d.plan.Wake = ring.Earlier(d.plan.Wake, d.o.Now.Add(time.Duration(float64(t)*jitter)))
}

func (d *decision) say(s *v1alpha1.ProxySync, state v1alpha1.State, reason rollout.Reason, message string) {
	d.reports = append(d.reports, outcome.Report{Assignment: &s.Assignment, State: state, Reason: reason, Message: message})
}

func (d *decision) write(w Write) { d.plan.Writes = append(d.plan.Writes, w) }
