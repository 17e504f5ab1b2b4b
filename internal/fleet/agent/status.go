package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// report sets the status: what became of each sync, and the conditions.
func (d *decision) report() {
	a := &d.o.Assemblage
	reports := make([]outcome.Report, 0, len(a.Syncs))
	for i, v := range d.verdicts {
		r := outcome.Report{Assignment: &a.Syncs[i].Assignment, State: v.state, Reason: v.reason, Message: v.message, Resolved: v.resolved, FailedAt: v.failedAt, Policy: v.policy}
		d.plan.Wake = ring.Earlier(d.plan.Wake, r.KeepMessage(&a.Status, d.o.Now))
		reports = append(reports, r)
	}
	d.plan.Status = outcome.StatusOf(&a.Status, reports, a.Generation, metav1.NewMicroTime(d.o.Now))
	if r := d.o.Refusals[""]; r != nil {
		d.plan.Status = outcome.Concluded(&d.plan.Status, a.Generation, metav1.NewMicroTime(d.o.Now), r.State, outcome.ReasonWriteRefused, r.Message)
	}
	d.plan.Changes = !equality.Semantic.DeepEqual(d.plan.Status, a.Status)
	if a.isRemote() && d.o.Reach.Problem == nil {
		next := outcome.NextAsk(&d.plan.Status, d.o.Now)
		d.plan.Wake, d.plan.Verify = ring.Earlier(d.plan.Wake, next), !next.IsZero()
	}
}

// reportEnd sets the status of an assemblage that is being deleted: what it waits for.
func (d *decision) reportEnd(left string) {
	a := &d.o.Assemblage
	if d.plan.Status = a.Status; left == "" {
		return
	}
	message := fmt.Sprintf("waiting for Flux to remove what %s has applied", left)
	if a.isRemote() {
		message += fmt.Sprintf("; if the cluster is lost, annotate this with %s=true to leave everything there", vocabulary.AbandonCluster.Native)
	}
	state, reason := v1alpha1.StateUpdating, outcome.ReasonDeleting
	if r := d.o.Refusals[""]; r != nil {
		state, reason, message = r.State, outcome.ReasonWriteRefused, r.Message
	}
	d.plan.Status = outcome.Concluded(&a.Status, a.Generation, metav1.NewMicroTime(d.o.Now), state, reason, message)
	d.plan.Changes = !equality.Semantic.DeepEqual(d.plan.Status, a.Status)
}
