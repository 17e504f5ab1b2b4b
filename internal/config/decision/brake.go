package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/rollout"
)

// An object whose content changes after each roll may be written because of the roll: by an operator that writes
// addresses of Pods into it. So its workloads are rolled for no more than so many contents within some time. The
// history of a record has more.
const (
	mostContents   = 5
	contentsWithin = 10 * time.Minute
)

// braked is a release that waits, because its object has changed too often.
type braked struct {
	content.Release

	namespace string
	// since is when the last content was rolled, until when the next may be.
	since, until time.Time
}

func (b *braked) text() string {
	object := b.Object.From(b.namespace)
	kind, name, _ := strings.Cut(object, " ")
	return fmt.Sprintf("%s has changed after each of %d rolls within %.0f minutes; to roll it now, run spillway retry %s/%s -n %s",
		object, mostContents, contentsWithin.Minutes(), strings.ToLower(kind), name, b.namespace)
}

func (b *braked) block() *rollout.Block {
	return &rollout.Block{Reason: ReasonConfigKeepsChanging, Message: b.text(), About: refTo(b.Object), Since: b.since, Until: b.until}
}

// brake finds the workloads that wait because an object of their namespace has changed too often. It returns a copy of
// what was observed, or the same if there is none. What is recorded decides, and only the manager writes that.
func brake(o Observed, options Options) Observed {
	if options.KeepGoing || len(o.Records) == 0 {
		return o
	}
	isCopy := false
	for i := range o.Workloads {
		b := o.brakeOf(&o.Workloads[i])
		if b == nil {
			continue
		}
		if !isCopy {
			o.Workloads, isCopy = slices.Clone(o.Workloads), true
		}
		o.Workloads[i].brake = b
	}
	return o
}

// brakeOf is the release of a workload that has to wait longest, nil if none has.
func (o *Observed) brakeOf(w *Workload) (longest *braked) {
	if !w.isStaged() || w.Settings.Unstoppable || w.Hashes == nil || w.IsCurrent() {
		return nil
	}
	for _, r := range w.Lacks(w.Change.Keys) {
		if since, until := o.brakes(w, r); until.After(o.Now) && (longest == nil || until.After(longest.until)) {
			longest = &braked{Release: r, namespace: w.Namespace, since: since, until: until}
		}
	}
	return longest
}

// brakes is when the last content of an object was rolled before a release, and until when that has to wait; zero if it
// has not. One that some workload has got goes on, and so do the objects of other namespaces, whose users must not hold
// what is rolled in this one.
func (o *Observed) brakes(w *Workload, r content.Release) (since, until time.Time) {
	record := o.Records[r.Object]
	if r.Object.Namespace != w.Namespace || record == nil || record.Rollout == nil {
		return since, until
	}
	is := record.Rollout
	if is.Target == r.Digest && (is.MovedAt != nil || is.FinishedAt != nil) {
		return since, until
	}
	retried := w.Config.RetriedAt(r.Object, o.Now)
	contents, last := 0, r.Digest
	count := func(target string, moved *metav1.MicroTime) {
		if moved == nil || target == last || moved.After(o.Now) || !moved.After(retried) {
			return
		}
		if contents++; contents == 1 {
			since = moved.Time
		}
		if last = target; contents == mostContents {
			until = moved.Add(contentsWithin)
		}
	}
	count(is.Target, is.MovedAt)
	for i := range record.History {
		count(record.History[i].Target, record.History[i].MovedAt)
	}
	return since, until
}
