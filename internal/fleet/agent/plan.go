package agent

import (
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// Apply applies a source, a Kustomization or a HelmRelease.
	Apply Act = "Apply"
	// Delete deletes a Kustomization or a HelmRelease.
	Delete Act = "Delete"
	// Dispose says on one of them what becomes of what it has applied when it is deleted, and
	// changes nothing else of it.
	Dispose Act = "Dispose"
	// Suspend has Flux leave a HelmRelease alone, and what it has installed when it is deleted.
	Suspend Act = "Suspend"
	// Kick has Flux reconcile immediately.
	Kick Act = "Kick"
)

// Write is an intended write.
type Write struct {
	Act Act
	// Object is what to apply.
	Object *unstructured.Unstructured
	// Kind, Name and UID are those of what the other acts are about, as it was seen. What is
	// applied over something has its UID as well.
	Kind, Name string
	UID        types.UID
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
	wanted map[appliedKey]bool
	// verdicts are those of the syncs, in their order.
	verdicts []verdict
}

// Decide says what is to be done for an assemblage. It is pure.
func Decide(o *Observed) Plan {
	d := &decision{o: o, needs: map[binding.Object]bool{}, wanted: map[appliedKey]bool{}}
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
		left = k.kind() + " " + k.GetName()
		if a.Abandoned && k.policy() != kustomizev1.DeletionPolicyOrphan {
			d.dispose(k, kustomizev1.DeletionPolicyOrphan)
		}
		d.remove(k, a.Abandoned)
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
	for _, k := range first(slices.DeleteFunc(d.owned(), func(k applied) bool { return d.wanted[keyOf(k)] })) {
		d.remove(k, false)
	}
}

// first are those that go before the others: nothing among them depends on these. Where all
// depend on one another in a circle they go together.
func first(all []applied) []applied {
	needed := map[appliedKey]bool{}
	for _, k := range all {
		for _, on := range slices.Concat(k.dependsOn(), notedDependencies(k)) {
			needed[on] = true
		}
	}
	free := slices.DeleteFunc(slices.Clone(all), func(k applied) bool { return needed[keyOf(k)] })
	if len(free) == 0 {
		return all
	}
	return free
}

// retire deletes an orphaned assemblage once all that it was made into is gone.
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
			d.write(about(Kick, d.o.at(d.o.keyOf(s))))
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

// disposed has what a sync is made into say what becomes of what it has applied when it is
// deleted, also where the rest of it must wait: the hub relies on it when it removes the sync.
// What runs is left if it says so, or if there is none yet.
func (d *decision) disposed(s *Sync) (left v1alpha1.DeletionPolicy) {
	k, wanted := d.o.at(d.o.keyOf(s)), deletionPolicy(s)
	if !s.isAssigned() || k != nil && !d.o.isOurs(k) {
		return ""
	}
	if k != nil && k.policy() != wanted && !d.applies(k) {
		d.dispose(k, wanted)
	}
	if wanted == kustomizev1.DeletionPolicyOrphan && (k == nil || k.policy() == wanted) {
		return v1alpha1.Orphan
	}
	return ""
}

// applies is true if one of them is about to be applied.
func (d *decision) applies(k applied) bool {
	return slices.ContainsFunc(d.plan.Writes, func(w Write) bool {
		return w.Act == Apply && w.Object.GetKind() == k.kind() && w.Object.GetName() == k.GetName()
	})
}

// sync is the chain of what may stand in the way of a sync. What comes first is said.
func (d *decision) sync(s *Sync) verdict {
	if !s.isAssigned() {
		return waits(outcome.ReasonNotAssigned, "pins the cluster only; nothing is assigned")
	}
	key := d.o.keyOf(s)
	d.wanted[key] = true
	if err := fluxspec.Err(s.Source, s.Package, &s.SyncOptions); err != nil {
		return failed(outcome.ReasonInvalid, "%s", err)
	}
	if s.helm() != nil && d.o.HelmMissing {
		return waits(outcome.ReasonHelmMissing, "the kinds HelmRelease, HelmChart and HelmRepository of Flux are not installed")
	}
	bound, result := evaluate(&d.o.Assemblage, s, d.o.Known)
	for _, object := range result.Needs {
		d.needs[object] = true
	}
	if result.Err != nil {
		return d.unbound(result.Err)
	}
	if v, ok := d.unusable(); ok {
		return v
	}
	sources, err := expandSources(&d.o.Assemblage, s)
	if err != nil {
		return failed(outcome.ReasonForeign, "%s", err)
	}
	k, err := d.o.expand(s, key, bound)
	if err != nil {
		return failed(outcome.ReasonForeign, "%s", err)
	}
	return d.bring(s, sources, k)
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

// bring brings the sources and what has them applied about, and says how they do.
func (d *decision) bring(s *Sync, sources []*unstructured.Unstructured, k *unstructured.Unstructured) verdict {
	keys := sourceKeys(s)
	fetched, live := d.o.fetched(keys), d.o.at(d.o.keyOf(s))
	if v, ok := d.blocked(s, keys, live); ok {
		return v
	}
	same := live != nil && isApplied(k, live.content())
	if on := d.missing(s); on != "" && !same {
		return waits(outcome.ReasonDependency, "waiting for %s to be ready", on)
	}
	changed := false
	for _, source := range sources {
		seen := d.o.Sources[SourceKey{source.GetKind(), source.GetName()}]
		if seen == nil || !isApplied(source, seen.Content) {
			d.write(Write{Act: Apply, Object: source})
			changed = true
		}
	}
	if !same {
		if d.repoints(s, live, k) {
			return d.repoint(s, fetched, live, k, changed)
		}
		w := Write{Act: Apply, Object: k}
		if live != nil {
			w.UID = live.GetUID()
		}
		d.write(w)
		changed = true
	}
	if changed {
		return updating("handed to Flux")
	}
	return settle(d.o, fetched, live, outcome.Find(&d.o.Assemblage.Status, &s.Assignment))
}

// missing is what a sync depends on that Flux does not wait for, as it is of the other kind, and
// that is not ready; empty if there is none.
func (d *decision) missing(s *Sync) string {
	_, others := d.o.dependencies(s)
	for _, key := range others {
		k := d.o.at(key)
		if ready := readyFor(k); ready == nil || ready.Status != metav1.ConditionTrue {
			return key.kind + " " + key.name
		}
	}
	return ""
}

// readyFor is the condition Ready of one as it is now, nil if there is none.
func readyFor(k applied) *metav1.Condition {
	if k == nil || k.GetDeletionTimestamp() != nil {
		return nil
	}
	ready := readyOf(k)
	if ready == nil || ready.ObservedGeneration != k.GetGeneration() {
		return nil
	}
	return ready
}

// blocked is ok if what has the names that are needed is in the way.
func (d *decision) blocked(s *Sync, keys []SourceKey, k applied) (v verdict, ok bool) {
	switch former := d.o.at(d.o.keyOf(s).other()); {
	case k != nil && !d.o.isOurs(k):
		return failed(outcome.ReasonForeign, "%s %s already exists and is not owned by this assemblage; rename or delete it", k.kind(), k.GetName()), true
	case k != nil && k.GetDeletionTimestamp() != nil:
		return waits(outcome.ReasonTerminating, "waiting for the old %s %s to be deleted", k.kind(), k.GetName()), true
	case former != nil && d.o.isOurs(former): // what it had applied would be that of both
		return waits(outcome.ReasonTerminating, "waiting for the old %s %s to be deleted", former.kind(), former.GetName()), true
	}
	for _, key := range keys {
		source := d.o.Sources[key]
		switch {
		case source == nil || s.SourceRef != nil && key.Name == s.SourceRef.Name:
		case !source.Shared:
			return failed(outcome.ReasonForeign, "%s %s already exists and is not owned by this assemblage; rename or delete it", key.Kind, key.Name), true
		case source.Deleting:
			return waits(outcome.ReasonTerminating, "waiting for the old %s %s to be deleted", key.Kind, key.Name), true
		}
	}
	return verdict{}, false
}

// owned are the Kustomizations and HelmReleases of the assemblage, by name.
func (d *decision) owned() []applied {
	return slices.DeleteFunc(d.o.all(), func(k applied) bool { return !d.o.isOurs(k) })
}

// about is a write of what was seen.
func about(act Act, k applied) Write {
	return Write{Act: act, Kind: k.kind(), Name: k.GetName(), UID: k.GetUID()}
}

func (d *decision) dispose(k applied, policy string) {
	w := about(Dispose, k)
	w.Policy = policy
	d.write(w)
}

// remove deletes one of them. A HelmRelease that is to leave what it has installed is
// suspended first, and seen to be.
func (d *decision) remove(k applied, orphan bool) {
	orphan = orphan || k.policy() == kustomizev1.DeletionPolicyOrphan
	switch {
	case orphan && k.kind() == helmv2.HelmReleaseKind && !k.isSuspended():
		d.write(about(Suspend, k))
	case k.GetDeletionTimestamp() == nil:
		d.write(about(Delete, k))
	}
}

func (d *decision) write(w Write) { d.plan.Writes = append(d.plan.Writes, w) }
