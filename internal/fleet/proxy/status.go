package proxy

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// errBroken says that the connection broke; the cluster is being probed.
var errBroken = errors.New("the connection broke")

// errUnproven says that it is not known yet whether the cluster answers.
var errUnproven = cluster.ErrUnproven

// report says what became of each sync, and of all of them.
func (d *decision) report() {
	p := d.o.Proxy
	d.reportRefused()
	for i := range d.reports {
		d.reports[i].Policy = d.disposed(d.reports[i].Assignment)
		d.plan.Wake = ring.Earlier(d.plan.Wake, d.reports[i].KeepMessage(&p.Status, d.o.Now))
	}
	now := metav1.NewMicroTime(d.o.Now)
	d.plan.Status = outcome.StatusOf(&p.Status, d.reports, p.Generation, now)
	d.plan.Status.Adopted, d.plan.Status.Found = d.adoption(), d.found()
	if r := d.o.Refusal; r != nil {
		d.plan.Status = outcome.Concluded(&d.plan.Status, p.Generation, now, r.State, outcome.ReasonWriteRefused, r.Message)
	}
	d.plan.Changes = !equality.Semantic.DeepEqual(d.plan.Status, p.Status)
	active := false
	for _, r := range d.reports {
		active = active || r.State != v1alpha1.StateSucceeded
	}
	d.poll(active)
}

// reportRefused says of what was sent that it was not accepted. All of it is one write:
// with more than one it is not known which of them is invalid, and none fails because of
// another.
func (d *decision) reportRefused() {
	if d.o.Refusal == nil {
		return
	}
	state := d.o.Refusal.State
	if len(d.sent) > 1 {
		state = v1alpha1.StateWaiting
	}
	for _, i := range d.sent {
		r := &d.reports[i]
		r.State, r.Reason, r.Message = state, outcome.ReasonWriteRefused, d.o.Refusal.Message
	}
}

// disposed is Orphan if what runs stays when a sync is removed: the cluster says so of
// what was sent, or has nothing of it. Of a cluster that does not answer that is unknown.
func (d *decision) disposed(a *v1alpha1.Assignment) v1alpha1.DeletionPolicy {
	state, _, _ := d.obstacle()
	live := d.liveSync(a.Name)
	switch {
	case state != "" || a.DeletionPolicy != v1alpha1.Orphan:
		return ""
	case live == nil:
		return v1alpha1.Orphan
	case live.DeletionPolicy != v1alpha1.Orphan || d.o.Live.Status.ObservedGeneration != d.o.Live.Generation:
		return ""
	}
	for _, s := range d.o.Live.Status.Syncs {
		if s.Name == a.Name { // at whatever revision it is
			return s.DeletionPolicy
		}
	}
	return ""
}

// poll has what is not watched read again, and what is watched while it is updating, as a
// cluster that was lost says nothing. One that does not answer wakes it when it does.
func (d *decision) poll(active bool) {
	if d.o.Problem == nil {
		d.plan.Wake = ring.Earlier(d.plan.Wake, outcome.NextAsk(&d.plan.Status, d.o.Now))
	}
	switch {
	case d.o.Problem != nil || d.o.Watched:
	case active:
		d.wakeIn(activeEvery)
	default:
		d.wakeIn(idleEvery)
	}
}

// stuckIfRefused says that the cluster does not accept what takes things away there.
func (d *decision) stuckIfRefused() {
	if r := d.o.Refusal; r != nil {
		d.stuck(r.State, outcome.ReasonWriteRefused, r.Message)
	}
}

// stuck says what the end of the ProxyAssemblage waits for.
func (d *decision) stuck(state v1alpha1.State, reason rollout.Reason, message string) {
	p := d.o.Proxy
	if d.o.Problem != nil || d.o.Refused != "" || d.o.Refusal != nil {
		message = fmt.Sprintf("cannot be removed: %s; annotate it with %s=true to leave everything there", message, vocabulary.AbandonCluster.Native)
	}
	d.plan.Status = outcome.Concluded(&p.Status, p.Generation, metav1.NewMicroTime(d.o.Now), state, reason, message)
	d.plan.Changes = !equality.Semantic.DeepEqual(d.plan.Status, p.Status)
}
