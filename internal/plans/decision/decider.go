package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/rollout"
)

// decider makes the decision about one Instance.
type decider struct {
	*Snapshot
	Decision

	// before is the status as it is; [Decision.Status] is as it will be.
	before *v1beta1.InstanceStatus
	// block is why nothing can be decided at all.
	block *rollout.Block
	// next is the plan that begins in the next pass, empty if there is none.
	next string
	// unready is the first workload that is not ready although no plan is running.
	unready string
	// secrets are the values of parameters from Secrets, by the tokens that stand for them, and
	// lacking is why one has none.
	secrets map[string]string
	lacking []choice.Problem
	// corrects is true if what differs is to be applied again, and helpless if only a user can do
	// something about all of it.
	corrects, helpless bool
}

// writesInstance makes a write to the Instance itself, the only write of its pass.
func (d *decider) writesInstance(w write.Write) bool {
	w.Ref = object.Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("Instance"), Namespace: d.Instance.Namespace, Name: d.Instance.Name}
	w.ResourceVersion = d.Instance.ResourceVersion
	d.Writes, d.Again = []write.Write{w}, true
	return true
}

// stalls stalls the Instance.
func (d *decider) stalls(problems ...choice.Problem) bool {
	d.problems = append(d.problems, problems...)
	return true
}

// wakeBy notes a moment at which time alone changes the decision.
func (d *decider) wakeBy(at time.Time) {
	if at.After(d.Now) && (d.Wake.IsZero() || at.Before(d.Wake)) {
		d.Wake = at
	}
}

// stamp is the present with the precision that the API keeps.
func (d *decider) stamp() metav1.MicroTime {
	return metav1.NewMicroTime(d.Now.Truncate(time.Microsecond))
}
