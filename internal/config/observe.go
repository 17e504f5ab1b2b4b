package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
)

// observer does all the reads of the ring.
type observer struct {
	options Options
	// workloads reads workloads, including the ring's own writes.
	workloads client.Reader
	// source reads their config.
	source content.Source
	// batch is about how many objects are read before the first write, all if zero; unread is
	// true if some are to be read by the next pass.
	batch  int
	unread bool
	// namespace limits the pass to one namespace, all if empty.
	namespace string
	cache     cache
	// pods reads the Pods of workloads that may have failed.
	pods pods.Reader
	// policies reads the policies, nil without any; tracker keeps what was read.
	policies *policy.Reader
	tracker  *tracker
	// spread reads the labels of namespaces, if a policy has stages of them.
	spread namespaces
	// readOnly is true for a reader of what is recorded, which decides nothing.
	readOnly bool
	// pins decides where workloads keep their config, and noPins is what it said in this pass.
	pins   *snapshots.Where
	noPins map[string]string
	// budget is the manager's record of what it has rolled, nil without one.
	budget *budget
	// retries are the reads and writes that failed.
	retries   ring.Expectations
	conflicts ring.Streak
	// statusConflicts are those of the statuses of policies.
	statusConflicts ring.Streak
}

func newObserver(o Options, workloads client.Reader, source content.Source) *observer {
	source.Namespaces, source.AllowCrossNamespace = o.Namespaces, o.AllowCrossNamespace
	return &observer{options: o, workloads: workloads, source: source, cache: cache{}, tracker: &tracker{reloader: o.Reloader}, pods: pods.Listing{Client: source.Values}, pins: snapshots.NewWhere(o.PinNamespaces, workloads), noPins: map[string]string{}, spread: namespaces{reader: workloads}}
}

// observe reads every relevant workload. It reads values only for those whose
// digests have changed since the last pass.
func (o *observer) observe(ctx context.Context) (decision.Observed, error) {
	policies, err := o.policies.Read(ctx, o.namespaces())
	if err != nil {
		return decision.Observed{}, fmt.Errorf("observe policies: %w", err)
	}
	o.tracker.read.Store(&policies)
	if err := o.selectNamespaces(ctx); err != nil {
		return decision.Observed{}, err
	}
	objects, err := workload.ListWith(ctx, o.workloads, o.namespaces(), o.tracker.tracks)
	if err != nil {
		return decision.Observed{}, err
	}
	records, recordable, err := o.policies.Records(ctx, o.namespaces())
	if err != nil {
		return decision.Observed{}, err
	}
	gates, gatesKnown, err := o.gates(ctx, policies)
	if err != nil {
		return decision.Observed{}, err
	}
	now := o.options.Now()
	spent, err := o.budget.observe(ctx, now)
	if err != nil {
		return decision.Observed{}, err
	}
	adopted, all := adoptedIn(records)
	seen := make([]*entry, len(objects))
	clear(o.noPins)
	for i, obj := range objects {
		o.cache.of(obj).adopt(all[workload.NameOf(obj)])
		seen[i] = o.read(ctx, obj, policies, now)
	}
	p := &pass{observer: o, now: now, lookup: o.source.Lookup(), refusals: o.retries.Refusals(now)}
	for _, e := range seen {
		if err := p.observeWorkload(ctx, e); err != nil {
			return decision.Observed{}, err
		}
	}
	p.hash(ctx, seen)
	o.cache.keep(seen)
	observed := p.snapshot(seen, spent)
	observed.Policies, observed.Gates, observed.GatesKnown = policies, gates, gatesKnown
	adopted.Refusals = p.refusals
	observed.Recordable, observed.Adopted = recordable, adopted
	if err := o.addUnlisted(ctx, &observed, all); err != nil {
		return decision.Observed{}, err
	}
	p.remember(ctx, &observed, records)
	return observed, p.observeAround(ctx, &observed)
}

// observeAround reads what the workloads have to do with: their Pods, their snapshots, and the same objects of other
// namespaces.
func (p *pass) observeAround(ctx context.Context, observed *decision.Observed) error {
	if !p.readOnly {
		if err := p.spread.observe(ctx, observed.Policies, observed); err != nil {
			return err
		}
		p.observePods(ctx, observed)
	}
	p.observeSnapshots(ctx, observed.Workloads)
	return nil
}

// gates are the RolloutGates of policies.
func (o *observer) gates(ctx context.Context, policies policy.Set) (gates map[types.UID]ask.Gates, known bool, err error) {
	if o.readOnly {
		return nil, false, nil
	}
	if gates, known, err = o.policies.Gates(ctx, policies); err != nil {
		return nil, false, fmt.Errorf("observe gates: %w", err)
	}
	for _, p := range policies {
		for i := range gates[p.UID()] {
			o.retries.Observed(decision.CreatedGate(p.Namespace, gates[p.UID()][i].Name))
		}
	}
	return gates, known, nil
}

// namespaces are those to list in; the empty one stands for all.
func (o *observer) namespaces() []string {
	if o.namespace != "" {
		return []string{o.namespace}
	}
	return kube.OrAll(o.options.Namespaces)
}

// read returns the entry of a workload. Retries begin again with another spec.
func (o *observer) read(ctx context.Context, obj client.Object, policies policy.Set, now time.Time) *entry {
	e := o.cache.of(obj)
	var annotations *reloader.Options
	if o.tracker.isReloaded(obj) {
		annotations = o.options.Reloader
	}
	if e.read(obj, policies.Tracking(obj), annotations, now) {
		o.accept(&e.workload)
	}
	e.pinBy(policies)
	if e.workload.Settings.Pin {
		e.allow(o.refusesPins(ctx, e.workload.Namespace))
	}
	return e
}

// refusesPins is why workloads of a namespace cannot keep their config, empty if they can; the same
// for all of a pass.
func (o *observer) refusesPins(ctx context.Context, namespace string) string {
	why, known := o.noPins[namespace]
	if !known {
		why = o.pins.Refusal(ctx, namespace)
		o.noPins[namespace] = why
	}
	return why
}

// pass is one run of observe.
type pass struct {
	*observer

	now      time.Time
	lookup   *content.Lookup
	refusals ring.Refusals
	// listed are the objects of namespaces that may roll workloads with annotations of Reloader.
	listed map[string]listing
}

// observeWorkload brings the entry of a workload up to date as far as digests tell.
func (p *pass) observeWorkload(ctx context.Context, e *entry) error {
	if err := p.observeOwned(ctx, &e.workload); err != nil {
		return err
	}
	if err := p.observeWaiting(ctx, e); err != nil {
		p.retries.Refuse(p.now, reading(&e.workload), err.Error())
	}
	if !e.workload.Settings.Tracked {
		return nil
	}
	version, err := p.demand(ctx, e)
	if err != nil {
		return err
	}
	changed, err := p.lookup.Observe(ctx, &e.config, version, e.workload.Demand)
	if err != nil {
		return err
	}
	if changed && !p.readOnly {
		metrics.ConfigChanges.Inc()
		e.changes.saw(p.now, e.workload.Namespace, e.config.Facts())
	}
	e.missed()
	return nil
}

// observeOwned finds the objects that would be deleted with the workload, because
// an old version of wave made it their owner.
func (p *pass) observeOwned(ctx context.Context, w *workload.Workload) error {
	if !w.Legacy.Finalizer {
		return nil
	}
	w.Legacy.Owns = nil
	if w.Legacy.Unknown = p.source.IsForbidden(content.ConfigMap) || p.source.IsForbidden(content.Secret); w.Legacy.Unknown {
		return nil
	}
	var (
		configMaps corev1.ConfigMapList
		secrets    corev1.SecretList
	)
	for _, list := range []client.ObjectList{&configMaps, &secrets} {
		err := p.source.Digests.List(ctx, list, client.InNamespace(w.Namespace), client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("list owned config: %w", err)
		}
	}
	for i := range configMaps.Items {
		addOwned(w, &configMaps.Items[i])
	}
	for i := range secrets.Items {
		addOwned(w, &secrets.Items[i])
	}
	return nil
}

func addOwned(w *workload.Workload, obj client.Object) {
	for i, ref := range obj.GetOwnerReferences() {
		if ref.UID == w.UID {
			w.Legacy.Owns = append(w.Legacy.Owns, workload.Owned{Object: content.ObjectOf(obj), Index: i, UID: ref.UID})
		}
	}
}

// observeWaiting finds the Pods of a released workload that are still suspended.
func (p *pass) observeWaiting(ctx context.Context, e *entry) error {
	s := &e.workload.Suspension
	if !s.Freeing || p.isPutOff(e) {
		return nil
	}
	waiting, err := workload.WaitingPods(ctx, p.source.Values, e.workload.Object)
	s.Waiting, s.Known = waiting, err == nil
	return err
}

// hash computes the hashes of the workloads whose config has changed and settled.
func (p *pass) hash(ctx context.Context, seen []*entry) {
	due := inTurn(slices.DeleteFunc(slices.Clone(seen), func(e *entry) bool { return !p.isDue(e) }))
	known, of := make([]*content.Known, len(due)), make(map[*content.Known]*entry, len(due))
	for i, e := range due {
		known[i], of[&e.config] = &e.config, e
	}
	if p.batch > 0 {
		known = content.Batch(known, p.batch)
	}
	p.unread = len(known) < len(due)
	for i, err := range p.lookup.Hash(ctx, known) {
		e := of[known[i]]
		w := &e.workload
		if err == nil {
			p.accept(w)
			e.changes.name(w.Namespace, e.config.Facts())
			continue
		}
		p.retries.Refuse(p.now, reading(w), err.Error())
	}
}

// inTurn is the order in which config is read: the first of each namespace, then the second,
// and so on, so that no namespace keeps the others waiting with what it asks for. Within a
// namespace it is that of the priorities; what is due for longer comes first.
func inTurn(due []*entry) []*entry {
	slices.SortStableFunc(due, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(b.workload.Settings.Priority, a.workload.Settings.Priority), a.dueSince().Compare(b.dueSince()))
	})
	turns, turn := map[string]int{}, make(map[*entry]int, len(due))
	for _, e := range due {
		turns[e.workload.Namespace]++
		turn[e] = turns[e.workload.Namespace]
	}
	slices.SortStableFunc(due, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(turn[a], turn[b]), a.dueSince().Compare(b.dueSince()))
	})
	return due
}

// isDue is true if a hash is needed now.
func (p *pass) isDue(e *entry) bool {
	known := &e.config
	return e.workload.Settings.Tracked && known.Hashes() == nil && known.IsComplete() && (!workload.IsUnchanged(&e.workload, known) || p.needsPins(e)) &&
		!p.now.Before(p.settlesAt(e)) && !p.isPutOff(e)
}

// needsPins is true if a workload that has the right hash is to be rolled for its pins.
func (p *pass) needsPins(e *entry) bool {
	if !e.workload.Pinning.On {
		return false
	}
	w := e.observed()
	return w.NeedsPins()
}

// settlesAt is when the changes of a workload were collected. One that has no hash yet is not delayed.
func (p *pass) settlesAt(e *entry) time.Time {
	w := e.observed()
	if w.Accepted() == "" {
		return e.changes.pending.SettlesAt(0)
	}
	return p.options.SettlesAt(&w, &e.changes.pending)
}

// snapshot is the value that the plan is made from.
func (p *pass) snapshot(seen []*entry, spent *decision.Budget) decision.Observed {
	refusals := p.retries.Refusals(p.now)
	o := decision.Observed{Now: p.now, By: p.options.By, Workloads: make([]decision.Workload, 0, len(seen)), Budget: spent}
	for _, e := range seen {
		w := e.snapshot(refusals)
		if p.lookup.IsBehind(&e.config) { // it is read again as soon as the cache shows what others were hashed with
			w.Hashes, w.Unchanged = nil, false
		}
		w.MayBeRolled = !e.tried.IsZero() && p.now.Before(e.tried.Add(ring.ShownWithin))
		w.Judge(p.now)
		if !p.options.Zones {
			w.Zone = workload.Zone{} // no other ring replaces its Pods
		}
		if spent != nil && p.options.MaxRolling > 0 {
			w.Rolled = spent.Rolling[w.UID]
		}
		if w.IsCurrent() {
			e.changes.settle(e.config.Facts())
			w.Change = decision.Change{}
		}
		o.Workloads = append(o.Workloads, w)
	}
	return o
}

// remember adds what is recorded of failures to the workloads that still use the object, and the rest
// as that of workloads that are gone. What is recorded of an object that does not exist any more, and
// that nothing uses, is left out.
func (p *pass) remember(ctx context.Context, o *decision.Observed, records []v1alpha1.ConfigRollout) {
	if len(records) == 0 {
		return
	}
	o.Records = make(map[content.Object]*v1alpha1.ConfigRollout, len(records))
	of := map[workload.Name][]verdict.Verdict{}
	for i := range records {
		if object, ok := verdict.Object(&records[i]); ok { // else the manager has not written it so
			o.Records[object] = &records[i]
		}
		for _, v := range verdict.Read(&records[i]) {
			of[v.On] = append(of[v.On], v)
		}
	}
	used := map[content.Object]bool{}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		of[w.Name] = recall(w, of[w.Name])
		o.Recall(w)
		for _, u := range w.Uses {
			used[u.Object] = used[u.Object] || w.Settings.Tracked
		}
	}
	gone := slices.Concat(slices.Collect(maps.Values(of))...)
	o.Gone = slices.DeleteFunc(gone, func(v verdict.Verdict) bool { return !used[v.Object()] && !p.lookup.Exists(ctx, v.Object()) })
	slices.SortFunc(o.Gone, verdict.Compare)
}

// recall has a workload remember what it has failed with of the objects that it uses. It returns the rest.
func recall(w *decision.Workload, all []verdict.Verdict) (others []verdict.Verdict) {
	var failed []workload.Failed
	for _, v := range all {
		if w.Settings.Tracked && slices.ContainsFunc(w.Uses, func(u content.Use) bool { return u.Object == v.Object() && !u.Ignored }) {
			failed = append(failed, v.Failed)
		} else {
			others = append(others, v)
		}
	}
	w.Remember(failed)
	return others
}

// observePods reads how the Pods of workloads do that may have failed with their config, or
// have to stay ready for some time.
func (p *pass) observePods(ctx context.Context, o *decision.Observed) {
	needed, read := map[string]bool{}, map[string]pods.Pods{}
	soaking := o.Soaking()
	for i := range o.Workloads {
		w := &o.Workloads[i]
		onTrial := !p.options.KeepGoing && (w.NeedsPods(p.now) || w.NeedsBaseline(p.now))
		soaks := soaking[w.Namespace] && w.Settings.Tracked && w.IsCurrent()
		awaits := w.AwaitsPod()
		if !onTrial && !soaks && !awaits {
			continue
		}
		if !needed[w.Namespace] {
			needed[w.Namespace], read[w.Namespace] = true, p.pods.In(ctx, w.Namespace)
		}
		w.Pods = read[w.Namespace].Of(w.Object, w.Template.Hash, p.now)
		if set, ok := w.Object.(*appsv1.StatefulSet); ok && awaits {
			w.Pods.Stuck = p.stuck(read[w.Namespace], set)
		}
	}
	p.pods.Keep(needed)
}

// stuck is the Pod that a StatefulSet waits for in vain, unless it was deleted a moment ago.
func (p *pass) stuck(of pods.Pods, set *appsv1.StatefulSet) *pods.Stuck {
	s := of.StuckOf(set, p.now)
	if s == nil || p.retries.IsMade(p.now, decision.Replacing(workload.NameOf(set), s.UID)) {
		return nil
	}
	return s
}

// observeSnapshots finds the workloads of which new Pods cannot start, because a snapshot was
// deleted. One of the present content is written again.
func (p *pass) observeSnapshots(ctx context.Context, workloads []decision.Workload) {
	for i := range workloads {
		w := &workloads[i]
		if len(w.Pinning.Pins) == 0 || !w.Settings.Tracked {
			continue
		}
		w.Pinning.Lost = p.lostOf(ctx, w, w.Pinning.Pins)
		if !w.Pinning.Pins.Agree(w.PinsNow()) {
			w.Pinning.Lacking, _ = w.LacksPinned(ctx, p.lookup, w.Pinning.Pins) // what cannot be read is said otherwise
		}
		if len(w.Records.Failed) > 0 { // it may go back
			w.Pinning.LostBefore = p.lostOf(ctx, w, w.Records.Answered.Before.Parsed())
		}
	}
}

// lostOf are pins of which the snapshot does not exist, and cannot be written again.
func (p *pass) lostOf(ctx context.Context, w *decision.Workload, pins pin.Pins) []pin.Pin {
	var lost []pin.Pin
	now := w.PinsNow()
	for _, of := range pins {
		present, _ := now.Of(of.Kind, of.Name)
		if of.HasSnapshot() && of != present && !p.lookup.Exists(ctx, of.SnapshotIn(w.Namespace)) {
			lost = append(lost, of)
		}
	}
	return lost
}

// learn records what became of the writes of what was observed at a time, and returns when to
// observe again; zero if time alone changes nothing. What became due while the writes were made
// was put off by the pass, and is due now. Conflict is true if another write of the pass met one.
func (o *observer) learn(observed time.Time, done *results, conflict bool) time.Time {
	now, wake := o.options.Now(), time.Time{}
	for i := range *done {
		w := &(*done)[i]
		o.retries.Learn(now, w.Change, w.Err)
		conflict = conflict || ring.IsConflict(w.Err)
		if e := o.cache[w.Write.Workload.UID]; e != nil && w.Write.Rolls && w.Err != nil && !isRefused(w.Err) {
			e.tried = now
		}
		if w.Err == nil && len(w.Write.Deletes) > 0 && !w.Write.Replaces { // no watch shows their deletion
			wake = now
		}
	}
	wake = ring.Earlier(wake, o.conflicts.Again(now, conflict))
	return ring.Earlier(wake, o.retries.Refusals(now).Wake(observed))
}
