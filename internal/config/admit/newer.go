package admit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/message"
)

// newer is that the Pods of a template cannot start with the content to which it is pinned, and could with
// the present one.
type newer struct {
	// lacks says what that content lacks, empty if nothing.
	lacks string
	// held is why the pins stay all the same, empty if they become those of the present content.
	held string
}

// newer finds out whether the template of a workload needs newer content than its pins are of, and writes
// the snapshots of the present one if it gets that.
func (h *handler) newer(ctx context.Context, a attempt, by reader, dryRun bool) newer {
	w := a.now
	if a.starts() || !w.Pinning.On || w.Hashes == nil || len(w.Missing) > 0 || h.live == nil {
		return newer{}
	}
	pins := a.pins()
	n := newer{lacks: h.lacks(ctx, w, pins, by)}
	if n.lacks == "" {
		return n
	}
	if n.held = h.held(ctx, w, pins); n.held != "" || dryRun {
		return n
	}
	var keys []snapshots.Key
	for _, p := range w.PinsNow() {
		if p.HasSnapshot() {
			keys = append(keys, snapshots.Key{Namespace: w.Namespace, Pin: p})
		}
	}
	for _, err := range h.snapshots.Ensure(ctx, keys) {
		n.held = err.Error()
	}
	return n
}

// pins are those of the template; if the request replaces it by a manifest without pins, those that it had.
func (a attempt) pins() pin.Pins {
	if len(a.now.Pinning.Pins) == 0 && a.now.Pinning.Invalid == "" {
		return a.before.Pinning.Pins
	}
	return a.now.Pinning.Pins
}

// lacks says what Pods of the template need and the content to which it is pinned does not have.
func (h *handler) lacks(ctx context.Context, w *workload.Workload, pins pin.Pins, by reader) string {
	demand := w.PinnedDemand(pins)
	if !by.mayRead(ctx, demand.Uses) {
		return ""
	}
	missing, err := w.LacksPinned(ctx, content.Source{Digests: content.Digesting(h.live)}.Lookup(), pins)
	if err != nil {
		return ""
	}
	return message.Join(missing, ", ", func(m content.Missing) string { return m.String(w.Namespace) })
}

// held is why a workload does not get the present content of what it is pinned to, empty if it does. The ring
// alone decides on turns: so it does not if another workload may have one, or a policy asks for more.
func (h *handler) held(ctx context.Context, w *workload.Workload, pins pin.Pins) string {
	switch {
	case w.Settings.Paused:
		return "the workload is paused"
	case w.IsUndone():
		return "an earlier revision was restored"
	case h.policies == nil:
		return "it is not known what has failed"
	}
	reader, in := h.policies(), []string{w.Namespace}
	set, err := reader.Read(ctx, in)
	if err != nil {
		return "it is not known which policies hold it"
	}
	records, known, err := reader.Records(ctx, in)
	if err != nil || !known {
		return "it is not known what has failed"
	}
	all, err := workload.ListWith(ctx, h.lists, in, func(client.Object) bool { return true })
	if err != nil {
		return "the other workloads are not known"
	}
	failed := verdictsOf(records)
	for _, p := range w.PinsNow() {
		if slices.Contains(pins, p) {
			continue
		}
		of := content.Object{Kind: p.Kind, Namespace: w.Namespace, Name: p.Name}
		by := set.For(w.Namespace, labels.Set(w.Object.GetLabels()), of)
		if why := cmp.Or(failedWith(w, of, failed, h.options.Now()), pausedFor(w, of), heldBy(by, h.options.Now()), decidedBy(set, w, of, all)); why != "" {
			return why
		}
	}
	return ""
}

// decidedBy is the policy that decides whether another workload of some gets a content first, or another namespace,
// empty if none does.
func decidedBy(set policy.Set, w *workload.Workload, of content.Object, all []client.Object) string {
	by, first := set.For(w.Namespace, labels.Set(w.Object.GetLabels()), of), set.Spreading(w.Namespace, labels.Set(w.Object.GetLabels()), of)
	i := slices.IndexFunc(all, func(o client.Object) bool { return workload.NameOf(o) != w.Name && uses(o, of) })
	switch {
	case first != nil:
		return first.Called() + " decides which namespace gets " + of.From(w.Namespace) + " first"
	case by != nil && i >= 0:
		return by.Called() + " decides whether " + workload.NameOf(all[i]).String() + " gets " + of.From(w.Namespace) + " first"
	default:
		return ""
	}
}

func verdictsOf(records []v1alpha1.ConfigRollout) (all []verdict.Verdict) {
	for i := range records {
		all = append(all, verdict.Read(&records[i])...)
	}
	return all
}

// failedWith is on which workload the present content of an object has failed, empty if on none.
func failedWith(w *workload.Workload, of content.Object, all []verdict.Verdict, now time.Time) string {
	digest, _ := w.Config.DigestOf(of)
	for i := range all {
		if v := &all[i]; v.Object() == of && v.Digest == digest && !w.Config.RetriedAt(of, now).After(v.At) {
			return content.Release{Object: of, Digest: digest}.From(w.Namespace) + " failed on " + v.On.String()
		}
	}
	return ""
}

func pausedFor(w *workload.Workload, of content.Object) string {
	if w.Config.PausedBy(of) == nil {
		return ""
	}
	return of.From(w.Namespace) + " is paused"
}

// heldBy is why a policy keeps a content from all workloads for now, empty if it does not.
func heldBy(p *policy.Policy, now time.Time) string {
	switch {
	case p == nil:
		return ""
	case p.Pause != nil:
		return p.Called() + " is paused"
	case p.Block(now) != nil:
		return p.Called() + ": " + p.Block(now).Message
	case slices.ContainsFunc(p.Stages, func(s policy.Stage) bool { return len(s.Gates) > 0 }):
		return p.Called() + " has gates"
	default:
		return ""
	}
}

func uses(workloadObject client.Object, of content.Object) bool {
	return slices.ContainsFunc(workload.Read(workloadObject).Demand.Uses, func(r content.Reference) bool { return r.Object == of })
}
