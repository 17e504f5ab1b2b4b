package decision

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// What was given up is rolled out once more when a user retries it, or approves the gate of which the
// refusal was the reason. The status says so before anything is done, and forgets the verdict with the
// same write: neither can end another verdict.

// retried is how the verdict about what is wanted ends, nil if it does not. It ends once all clusters have
// left the revision: what they report of the former rollout is no evidence in the next.
func (d *decision) retried() *v1alpha1.Retried {
	s := &d.o.Module.Status
	if s.RolledBack == "" || s.RolledBack != d.wanted || len(d.problems) > 0 || d.isReturning() {
		return nil
	}
	ended := &v1alpha1.Retried{Revision: d.wanted, At: metav1.NewMicroTime(d.o.Now)}
	if r := d.o.Module.Retry; r.Ends(s) {
		ended.By, ended.Reason = r.By, r.Reason
		return ended
	}
	if gate := d.o.Gate(cmp.Or(s.GivenUp, &v1alpha1.GivenUp{}).Gate); gate != nil && gate.Revision == d.wanted && gate.Verdict == rollout.Passed {
		ended.Gate, ended.Reason = gate.Name, gate.Message
		return ended
	}
	return nil
}

// isReturning is true while a cluster that can return has what was given up.
func (d *decision) isReturning() bool {
	for _, m := range d.members {
		isKept := m.move == nil && m.leaf.Current == d.target // what was given up changes nothing on it
		has := m.isAssigned() && m.record.Revision == d.wanted && !isKept || m.leaf.Current == d.wanted
		if has && m.stage >= 0 && !d.o.Foreign[m.Name] && !d.isStopped() {
			return true
		}
	}
	return false
}

// isRetried is true while what is wanted is rolled out once more, whatever clusters tell of how it went before.
func (d *decision) isRetried() bool {
	r := d.o.Module.Status.Retried
	return r != nil && r.Revision == d.wanted
}

func (d *decision) howToRetry() string { return "try it once more: " + d.o.Module.RetryCommand() }
