package agent

import (
	"maps"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/ring"
)

// refusedAgain is when to look again at what could not be looked at: no watch tells.
const refusedAgain = time.Minute

// Act is what a write does.
type Act = assemblage.Act

// The acts, besides those on the assemblage itself.
const (
	// Apply applies a source or a Kustomization.
	Apply Act = "Apply"
	// Delete deletes a Kustomization.
	Delete Act = "Delete"
	// Dispose says on a Kustomization what becomes of what it has applied when it is
	// deleted, and changes nothing else of it.
	Dispose Act = "Dispose"
	// Kick has Flux reconcile immediately.
	Kick Act = "Kick"
)

// Write is an intended write.
type Write struct {
	Act Act
	// Object is what to apply.
	Object *unstructured.Unstructured
	// Name and UID are those of the Kustomization that the other acts are about, as
	// it was seen. What is applied over something has its UID as well.
	Name string
	UID  types.UID
	// Policy is what to say, in the words of Flux, for Dispose.
	Policy string
	// Sync is the one that needs it, empty if none does.
	Sync string
}

// Plan is what to do next.
type Plan struct {
	assemblage.Plan[Write]

	// Asks are failures after which the cluster must be probed.
	Asks []string
	// Verify is true while something is updating on another cluster: it must have answered
	// lately.
	Verify bool
}

// decision is one run of [Decide].
type decision struct {
	o      *Observed
	plan   Plan
	needs  map[binding.Object]bool
	wanted map[string]bool
	// verdicts are those of the syncs, in their order.
	verdicts []verdict
}

// Decide says what is to be done for an assemblage. It is pure.
func Decide(o *Observed) Plan {
	d := &decision{o: o, needs: map[binding.Object]bool{}, wanted: map[string]bool{}}
	a := &o.Assemblage
	switch {
	case a.Deleting:
		d.end()
	case !a.HasFinalizer && len(a.Syncs) > 0:
		d.write(Write{Act: assemblage.AddFinalizer})
		d.plan.Status = a.Status
	default:
		d.each()
		d.removeUnwanted()
		d.report()
		d.retire()
	}
	d.plan.Needs = binding.Sorted(d.needs)
	return d.plan
}

// end takes everything away, and then lets the assemblage go.
func (d *decision) end() {
	a := &d.o.Assemblage
	left := ""
	for _, k := range first(d.owned()) {
		left = k.Name
		if a.Abandoned && k.Spec.DeletionPolicy != kustomizev1.DeletionPolicyOrphan {
			d.dispose(k, kustomizev1.DeletionPolicyOrphan)
		}
		d.remove(k)
	}
	if left == "" && a.HasFinalizer {
		d.write(Write{Act: assemblage.RemoveFinalizer})
		d.plan.Status = a.Status
		return
	}
	d.reportEnd(left)
}

// removeUnwanted deletes what no sync is made into any more.
func (d *decision) removeUnwanted() {
	for _, k := range first(slices.DeleteFunc(d.owned(), func(k *kustomizev1.Kustomization) bool { return d.wanted[k.Name] })) {
		d.remove(k)
	}
}

// first are those of some Kustomizations that go before the others: nothing among them depends
// on these. Where all depend on one another in a circle they go together.
func first(all []*kustomizev1.Kustomization) []*kustomizev1.Kustomization {
	needed := map[string]bool{}
	for _, k := range all {
		for _, on := range k.Spec.DependsOn {
			if on.Namespace == "" || on.Namespace == k.Namespace {
				needed[on.Name] = true
			}
		}
	}
	free := slices.DeleteFunc(slices.Clone(all), func(k *kustomizev1.Kustomization) bool { return needed[k.Name] })
	if len(free) == 0 {
		return all
	}
	return free
}

// retire deletes an orphaned assemblage once all of its Kustomizations are gone.
func (d *decision) retire() {
	if d.o.Orphaned && len(d.owned()) == 0 {
		d.write(Write{Act: assemblage.Retire})
	}
}

// each decides about every sync separately.
func (d *decision) each() {
	a := &d.o.Assemblage
	for i := range a.Syncs {
		s := &a.Syncs[i]
		first := len(d.plan.Writes)
		v := d.sync(s)
		v.policy = d.disposed(s)
		if v.ask != "" {
			d.plan.Asks = append(d.plan.Asks, v.ask)
		}
		if v.kick {
			name := d.o.kustomizationName(s.Name)
			d.write(Write{Act: Kick, Name: name, UID: d.o.Kustomizations[name].UID})
		}
		for j := range d.plan.Writes[first:] {
			d.plan.Writes[first+j].Sync = s.Name
		}
		if r := d.o.Refusals[s.Name]; r != nil {
			v.state, v.reason, v.message = r.State, outcome.ReasonWriteRefused, r.Message
		}
		d.verdicts = append(d.verdicts, v)
	}
}

// disposed has the Kustomization of a sync say what becomes of what it has applied when
// it is deleted, also where the rest of it must wait: the hub relies on it when it removes
// the sync. What runs is left if it says so, or if there is none yet.
func (d *decision) disposed(s *Sync) (left v1alpha1.DeletionPolicy) {
	k, wanted := d.o.Kustomizations[d.o.kustomizationName(s.Name)], deletionPolicy(s)
	if !s.isAssigned() || k != nil && !d.o.isOurs(k) {
		return ""
	}
	if k != nil && k.Spec.DeletionPolicy != wanted && !d.applies(k.Name) {
		d.dispose(k, wanted)
	}
	if wanted == kustomizev1.DeletionPolicyOrphan && (k == nil || k.Spec.DeletionPolicy == wanted) {
		return v1alpha1.Orphan
	}
	return ""
}

// applies is true if a Kustomization is about to be applied.
func (d *decision) applies(name string) bool {
	return slices.ContainsFunc(d.plan.Writes, func(w Write) bool {
		return w.Act == Apply && w.Object.GetKind() == kustomizev1.KustomizationKind && w.Object.GetName() == name
	})
}

// sync is the chain of what may stand in the way of a sync. What comes first is said.
func (d *decision) sync(s *Sync) verdict {
	if !s.isAssigned() {
		return waits(outcome.ReasonNotAssigned, "pins the cluster only; nothing is assigned")
	}
	name := d.o.kustomizationName(s.Name)
	d.wanted[name] = true
	if err := fluxspec.Err(s.Source, s.Package); err != nil {
		return failed(outcome.ReasonInvalid, "%s", err)
	}
	substitute, result := evaluate(&d.o.Assemblage, s, d.o.Known)
	for _, object := range result.Needs {
		d.needs[object] = true
	}
	if result.Err != nil {
		return d.unbound(result.Err)
	}
	if v, ok := d.unusable(); ok {
		return v
	}
	source, err := expandSource(&d.o.Assemblage, s)
	if err != nil {
		return failed(outcome.ReasonForeign, "%s", err)
	}
	k, err := d.o.expandKustomization(s, name, substitute)
	if err != nil {
		return failed(outcome.ReasonForeign, "%s", err)
	}
	return d.bring(s, source, k)
}

// unbound is what is said of a sync with a binding that has no value.
func (d *decision) unbound(err error) verdict {
	state, reason, message := outcome.Unbound(err)
	if state == v1alpha1.StateFailed {
		d.plan.Wake = ring.Earlier(d.plan.Wake, d.o.Now.Add(refusedAgain))
	}
	return verdict{state: state, reason: reason, message: message}
}

// unusable is ok if there is no kubeconfig with which to apply anything. What was
// applied already is left as it is.
func (d *decision) unusable() (v verdict, ok bool) {
	state, reason, message := outcome.Unusable(d.o.Reach.Problem, d.o.Assemblage.Secret)
	if reason != outcome.ReasonKubeconfig {
		return verdict{}, false
	}
	return verdict{state: state, reason: reason, message: message}, true
}

// bring brings the source and the Kustomization about, and says how they do.
func (d *decision) bring(s *Sync, source, k *unstructured.Unstructured) verdict {
	fetched := d.o.Sources[sourceKey(s)]
	live := d.o.Kustomizations[k.GetName()]
	if v, ok := d.blocked(s, fetched, live); ok {
		return v
	}
	changed := false
	if source != nil && (fetched == nil || !isApplied(source, fetched.Content)) {
		d.write(Write{Act: Apply, Object: source})
		changed = true
	}
	if live == nil || !isApplied(k, content(live)) {
		if d.repoints(s, live, k) {
			return d.repoint(s, fetched, live, k, changed)
		}
		w := Write{Act: Apply, Object: k}
		if live != nil {
			w.UID = live.UID
		}
		d.write(w)
		changed = true
	}
	if changed {
		return updating("handed to Flux")
	}
	return settle(d.o, fetched, live, outcome.Find(&d.o.Assemblage.Status, &s.Assignment))
}

// blocked is ok if what has the names that are needed is in the way.
func (d *decision) blocked(s *Sync, source *Source, k *kustomizev1.Kustomization) (v verdict, ok bool) {
	key := sourceKey(s)
	switch {
	case k != nil && !d.o.isOurs(k):
		return failed(outcome.ReasonForeign, "Kustomization %s already exists and is not owned by this assemblage; rename or delete it", k.Name), true
	case k != nil && k.DeletionTimestamp != nil:
		return waits(outcome.ReasonTerminating, "waiting for the old Kustomization %s to be deleted", k.Name), true
	case source == nil || s.SourceRef != nil:
		return verdict{}, false
	case !source.Shared:
		return failed(outcome.ReasonForeign, "%s %s already exists and is not owned by this assemblage; rename or delete it", key.Kind, key.Name), true
	case source.Deleting:
		return waits(outcome.ReasonTerminating, "waiting for the old %s %s to be deleted", key.Kind, key.Name), true
	default:
		return verdict{}, false
	}
}

// owned are the Kustomizations of the assemblage, by name.
func (d *decision) owned() []*kustomizev1.Kustomization {
	var owned []*kustomizev1.Kustomization
	for _, name := range slices.Sorted(maps.Keys(d.o.Kustomizations)) {
		if k := d.o.Kustomizations[name]; d.o.isOurs(k) {
			owned = append(owned, k)
		}
	}
	return owned
}

func (d *decision) dispose(k *kustomizev1.Kustomization, policy string) {
	d.write(Write{Act: Dispose, Name: k.Name, UID: k.UID, Policy: policy})
}

func (d *decision) remove(k *kustomizev1.Kustomization) {
	if k.DeletionTimestamp == nil {
		d.write(Write{Act: Delete, Name: k.Name, UID: k.UID})
	}
}

func (d *decision) write(w Write) { d.plan.Writes = append(d.plan.Writes, w) }
