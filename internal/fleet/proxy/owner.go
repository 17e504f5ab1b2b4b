package proxy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// What is on a cluster belongs to the hub, the namespace, the name and the cluster that are
// written on it: these are the same when the hub was rebuilt. The UID beside them tells
// whether this very ProxyAssemblage has written it.

// identity is what a ProxyAssemblage is known by on its cluster.
func (d *decision) identity() string {
	p := d.o.Proxy
	return strings.Join([]string{d.o.Hub, p.Namespace, p.Name, agent.ClusterOf(p.Spec.ClusterRef, p.Spec.KubeconfigRef.Name)}, "/")
}

// writer is the UID of the ProxyAssemblage that has written the Assemblage, empty if none has.
func (d *decision) writer() string {
	if d.o.Live == nil {
		return ""
	}
	return vocabulary.ProxiedBy.Get(d.o.Live.Annotations)
}

// isOurs is true if the Assemblage is what this ProxyAssemblage has sent, or has taken over.
func (d *decision) isOurs() bool {
	by := d.writer()
	return by != "" && (by == string(d.o.Proxy.UID) || by == vocabulary.TakeOver.Get(d.o.Proxy.Annotations) || d.isAdopted())
}

// isForeign is true if another ProxyAssemblage writes the Assemblage.
func (d *decision) isForeign() bool { return d.writer() != "" && !d.isOurs() && !d.isFormer() }

// isFormer is true of an Assemblage that a ProxyAssemblage of the same identity has written:
// that of this hub before it was rebuilt, or that of another hub with the same name.
func (d *decision) isFormer() bool {
	by := d.writer()
	return by != "" && by != string(d.o.Proxy.UID) && vocabulary.ProxiedFor.Get(d.o.Live.Annotations) == d.identity()
}

// isAdopted is true of what a former one has written, if it had the same content once, and
// no other hub has written it since.
func (d *decision) isAdopted() bool { return d.isFormer() && d.o.Proxy.Status.Adopted == d.mark() }

// mark is which content it is, and by whom.
func (d *decision) mark() string {
	return d.writer() + "/" + vocabulary.AppliedHash.Get(d.o.Live.Annotations)
}

// adoption is the mark of what is adopted, empty if nothing is. It is written down before
// anything else is sent there: afterwards that the content was the same is not known any more.
func (d *decision) adoption() string {
	if d.isAdopted() || d.isFormer() && (d.isSame() || d.isTaken()) {
		return d.mark()
	}
	return ""
}

// isSame is true if all that would be sent is what a former one has sent, and no more.
func (d *decision) isSame() bool {
	for i := range d.entries {
		live := d.liveSync(d.entries[i].Name)
		if live == nil || !isSameButMoment(live, &d.entries[i]) {
			return false
		}
	}
	return len(d.needs) == 0 && namesOf(d.entries) == vocabulary.SentSyncs.Get(d.o.Live.Annotations)
}

// isSameButMoment is true of a sync that runs what is to be sent, but for when and in which state
// that was assigned, and that a commit may stand there for the tag.
func isSameButMoment(live, entry *v1alpha1.NamedSync) bool {
	same := *live
	same.AssignedAt, same.Unready = entry.AssignedAt, entry.Unready
	if live.Revision != "" && live.Revision == entry.Revision && isCommitOf(live.Source, entry.Source) {
		same.Source = entry.Source
	}
	return holds(&same, entry)
}

// isCommitOf is true if one source differs from another only in that it names a commit or
// digest where that names a tag that does not move.
func isCommitOf(exact, tagged *v1alpha1.Source) bool {
	if exact == nil || tagged == nil {
		return false
	}
	t := tagged.DeepCopy()
	switch {
	case !t.Moves():
		return false
	case t.Git != nil && exact.Git != nil && exact.Git.Version.Revision != "":
		t.Git.Version = exact.Git.Version
	case t.OCI != nil && exact.OCI != nil && exact.OCI.Version.Digest != "":
		t.OCI.Version = exact.OCI.Version
	case t.Helm != nil && exact.Helm != nil && !exact.Moves():
		t.Helm.Version = exact.Helm.Version
	default:
		return false
	}
	return equality.Semantic.DeepEqual(t, exact)
}

// judgeFormer says what became of a sync that a former one has sent, false if that is not
// what is to run: then it is sent if it was adopted.
func (d *decision) judgeFormer(s *v1alpha1.ProxySync, entry *v1alpha1.NamedSync) bool {
	live := d.liveSync(s.Name)
	switch {
	case live != nil && (s.Found || isSameButMoment(live, entry)):
		d.reports = append(d.reports, d.reported(s, &live.Assignment))
	case d.isOurs():
		return false
	default:
		d.say(s, v1alpha1.StateFailed, outcome.ReasonForeign, fmt.Sprintf(
			"Assemblage %s has other content, written by this hub before it was rebuilt or by another hub; to take it over: %s", d.o.Live.Name, d.toTakeOver()))
	}
	return true
}

// reported is what the cluster says about a sync that was sent by a former one.
func (d *decision) reported(s *v1alpha1.ProxySync, sent *v1alpha1.Assignment) outcome.Report {
	r := outcome.Report{
		Assignment: &s.Assignment, State: v1alpha1.StateUpdating, Reason: outcome.ReasonApplying, Message: "the cluster has not observed it yet",
	}
	if d.o.Live.Status.ObservedGeneration != d.o.Live.Generation {
		return r
	}
	if now := outcome.Find(&d.o.Live.Status, sent); now != nil {
		r.State, r.Reason, r.Message, r.Resolved = now.State, rollout.Reason(now.Reason), now.Message, now.Resolved
	}
	return r
}

// toTakeOver is the command by which a user has the Assemblage taken over.
func (d *decision) toTakeOver() string {
	p := d.o.Proxy
	return "kubectl annotate proxyassemblage " + shell.Join(p.Name, "-n", p.Namespace, "--overwrite", vocabulary.TakeOver.Native+"="+d.writer())
}
