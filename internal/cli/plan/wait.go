package plan

import (
	"context"
	"errors"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/rollout"
)

// Waiter waits until an Instance is as it is wanted, and shows the plans that make it so.
type Waiter struct {
	Env    command.Environment
	Client client.WithWatch
	Out    io.Writer
	// Quiet shows nothing meanwhile.
	Quiet bool
	// Timeout is how long it waits; 0 is no limit.
	Timeout time.Duration
}

func (w Waiter) planner(name types.NamespacedName) *planner {
	return &planner{Person: act.Person{Env: w.Env, Client: w.Client}, out: w.Out, name: name, timeout: w.Timeout}
}

// Settled waits until the manager has done all that the spec of a generation asks for. The
// error says why it does not.
func (w Waiter) Settled(ctx context.Context, name types.NamespacedName, generation int64) error {
	p := w.planner(name)
	view := p.view()
	if w.Quiet {
		view = blindView{}
	}
	var seen *v1beta1.Instance
	draw := func() {
		if seen != nil {
			view.show(seen, p.Env.Now())
		}
	}
	return p.until(ctx, func(i *v1beta1.Instance) (bool, error) {
		if i.Status.ObservedGeneration < generation {
			return false, nil
		}
		if x := i.Status.Execution; x != nil && (x.FinishedAt == nil || choice.SameTarget(i.Namespace, &x.Spec, &i.Spec)) {
			seen = i
			draw()
		}
		e := plans.ExplanationOf(i)
		switch e.Phase {
		case plans.PhaseStalled:
			return false, errors.New(e.Sentence)
		case rollout.PhaseComplete:
			return true, nil
		default:
			return false, nil
		}
	}, draw)
}

// Deleted waits until an Instance, and all that its cleanup plan waits for, is deleted. That a plan
// failed before keeps nothing from being deleted.
func (w Waiter) Deleted(ctx context.Context, name types.NamespacedName, uid types.UID) error {
	p := w.planner(name)
	err := p.until(ctx, func(i *v1beta1.Instance) (bool, error) {
		e, last := plans.ExplanationOf(i), i.Status.Execution
		if i.UID == uid && e.Phase == plans.PhaseStalled && last != nil && last.Cause == v1beta1.CauseDelete && last.Result != v1beta1.ResultComplete {
			return false, errors.New(e.Sentence)
		}
		return i.UID != uid, nil
	}, func() {})
	if absent := (absentError{}); errors.As(err, &absent) || errors.Is(err, errDeleted) {
		return nil
	}
	return err
}
