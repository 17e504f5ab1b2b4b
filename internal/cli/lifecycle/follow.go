package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	// redrawEvery is how often the times are drawn again while nothing else changes.
	redrawEvery = time.Second
	// watchAgain is how long to wait before a watch that has ended is begun again.
	watchAgain = time.Second
)

// errWatchEnded: the API server ends every watch after a while.
var errWatchEnded = errors.New("the watch has ended")

// errDeleted: the Instance was deleted while it was watched.
var errDeleted = errors.New("was deleted")

// absentError says that the Instance does not exist.
type absentError struct{ error }

// follow tells how an execution goes until it has ended, or something else keeps
// it from beginning.
func (p *planner) follow(ctx context.Context, is func(*v1beta1.Execution) bool) error {
	view := p.view()
	var seen *v1beta1.Instance
	draw := func() {
		if seen != nil {
			view.show(seen, p.Env.Now())
		}
	}
	return p.until(ctx, func(i *v1beta1.Instance) (bool, error) {
		x := i.Status.Execution
		if x == nil || !is(x) {
			return false, stalled(i)
		}
		seen = i
		draw()
		switch {
		case x.FinishedAt == nil:
			return false, nil
		case x.Result != v1beta1.ResultComplete:
			return false, fmt.Errorf("plan %s: %s: %s", x.Plan, strings.ToLower(string(x.Result)), x.Message)
		default:
			return true, nil
		}
	}, draw)
}

// stalled is an error if what was asked for cannot be followed.
func stalled(i *v1beta1.Instance) error {
	c := apimeta.FindStatusCondition(i.Status.Conditions, ring.ConditionStalled)
	if c != nil && c.Reason == string(decision.ReasonInvalid) && i.Status.ObservedGeneration == i.Generation {
		return errors.New(c.Message)
	}
	return nil
}

// until watches the Instance until it is done, and meanwhile ticks.
func (p *planner) until(ctx context.Context, done func(*v1beta1.Instance) (bool, error), tick func()) error {
	if p.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.timeout)
		defer cancel()
	}
	for {
		err := p.watch(ctx, done, tick)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return fmt.Errorf("the plan has not ended after %s; it continues without this command; to see why it waits: spillway explain instance/%s -n %s", p.timeout, p.name.Name, p.name.Namespace)
		case ctx.Err() != nil:
			return errors.New("interrupted; the plan continues without this command")
		case !errors.Is(err, errWatchEnded):
			return err
		}
		select {
		case <-ctx.Done():
		case <-clock.RealClock{}.After(watchAgain):
		}
	}
}

// watch reads the Instance, and then its changes, as long as the
// API server tells.
func (p *planner) watch(ctx context.Context, done func(*v1beta1.Instance) (bool, error), tick func()) error {
	list, one := &v1beta1.InstanceList{}, fields.OneTermEqualSelector("metadata.name", p.name.Name)
	if err := p.Client.List(ctx, list, client.InNamespace(p.name.Namespace), client.MatchingFieldsSelector{Selector: one}); err != nil {
		return gone(err, "get instance "+p.name.Name)
	}
	if len(list.Items) == 0 {
		return absentError{command.NotFound(ctx, p.Client, v1beta1.GroupVersion.WithKind("Instance"), p.name.Namespace, p.name.Name)}
	}
	if is, err := done(&list.Items[0]); is || err != nil {
		return err
	}
	w, err := p.Client.Watch(ctx, list, client.InNamespace(p.name.Namespace), client.MatchingFieldsSelector{Selector: one},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return gone(err, "watch instance "+p.name.Name)
	}
	defer w.Stop()
	ticker := clock.RealClock{}.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return errWatchEnded
		case <-ticker.C():
			tick()
		case e, open := <-w.ResultChan():
			if !open {
				return errWatchEnded
			}
			if is, err := p.happened(e, done); is || err != nil {
				return err
			}
		}
	}
}

// happened is done with what the API server tells.
func (p *planner) happened(e watch.Event, done func(*v1beta1.Instance) (bool, error)) (bool, error) {
	i, ok := e.Object.(*v1beta1.Instance)
	switch {
	case !ok:
		return false, errWatchEnded // by an error, which the next look tells of
	case e.Type == watch.Deleted:
		return false, fmt.Errorf("instance/%s %w", p.name.Name, errDeleted)
	default:
		return done(i)
	}
}

// gone is an error of a request. One that says nothing of the request is no reason
// to give up.
func gone(err error, what string) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return errWatchEnded
}

// Waiter waits until an Instance is as it is wanted, and shows the plans that make it so.
type waiter struct {
	Env    command.Environment
	Client client.WithWatch
	Out    io.Writer
	// Quiet shows nothing meanwhile.
	Quiet bool
	// Timeout is how long it waits; 0 is no limit.
	Timeout time.Duration
}

func (w waiter) planner(name types.NamespacedName) *planner {
	return &planner{Person: act.Person{Env: w.Env, Client: w.Client}, out: w.Out, name: name, timeout: w.Timeout}
}

// Settled waits until the manager has done all that the spec of a generation asks for. The
// error says why it does not.
func (w waiter) Settled(ctx context.Context, name types.NamespacedName, generation int64) error {
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
func (w waiter) Deleted(ctx context.Context, name types.NamespacedName, uid types.UID) error {
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
