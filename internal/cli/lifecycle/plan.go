package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/cli/show"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/nearest"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

type planner struct {
	act.Person

	wait    bool
	timeout time.Duration
	out     io.Writer
	name    types.NamespacedName
	// changed is the Instance that was changed, as it was written.
	changed *v1beta1.Instance
}

// NewPlan returns the command plan with the commands beneath it.
func NewPlan(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{Use: "plan", Short: "Show and steer the plans of an Instance"}
	for _, add := range []func(*planner) *cobra.Command{newPlanStatus, newPlanHistory, newPlanTrigger, newPlanAbandon, newPlanRetry} {
		cmd.AddCommand(add(&planner{Person: act.Person{Env: env}}))
	}
	return cmd
}

func newPlanStatus(p *planner) *cobra.Command {
	cmd := p.command("status INSTANCE", "Show the running plan, or the last one that ran", "status zookeeper -n shop --wait", 1, func(ctx context.Context, _ []string) error {
		e, err := p.explainSeen(ctx)
		if err != nil {
			return err
		}
		var ended error
		isNext := e.Reason == decision.ReasonInProgress && (e.UID == "" || e.Ended != nil) // one begins in the next pass
		if p.wait && (e.UID != "" || isNext) {
			ended = p.follow(ctx, func(x *v1beta1.Execution) bool { return (x.UID == e.UID) != isNext })
			if p.Output == "" {
				return ended
			}
			if e, err = plans.Explain(ctx, p.Client, p.name); err != nil {
				return err
			}
		}
		return errors.Join(command.Show(p.out, p.Output, e, func(w io.Writer) { display.Plan(w, display.StyleOf(w, p.Env.Lookup), e, p.Env.Now()) }), ended)
	})
	command.OutputFlag(cmd, &p.Output)
	return p.waits(cmd)
}

// explainSeen explains the Instance, once its spec is observed if the command waits: the last plan is of another
// spec until then.
func (p *planner) explainSeen(ctx context.Context) (plans.Explanation, error) {
	e, err := p.explain(ctx)
	if err != nil || !p.wait || e.Phase != plans.PhaseUnseen {
		return e, err
	}
	seen := func(i *v1beta1.Instance) (bool, error) { return i.Status.ObservedGeneration == i.Generation, nil }
	if err := p.until(ctx, seen, func() {}); err != nil {
		return e, err
	}
	return p.explain(ctx)
}

func newPlanHistory(p *planner) *cobra.Command {
	told := &show.History{Env: p.Env}
	var cmd *cobra.Command
	cmd = p.command("history INSTANCE", "List the last executions, the newest first", "history zookeeper -n shop", 1, func(context.Context, []string) error {
		return told.Print(cmd, p.Client, describe.Ref{Kind: "Instance", Namespace: p.name.Namespace, Name: p.name.Name})
	})
	told.AddFlags(cmd)
	return cmd
}

func newPlanTrigger(p *planner) *cobra.Command {
	return p.gives(p.waits(p.command("trigger INSTANCE PLAN", "Run a plan", "trigger zookeeper backup -n shop --wait --timeout 10m", 2, func(ctx context.Context, args []string) error {
		uid := uuid.NewUUID()
		err := p.change(ctx, func(i *v1beta1.Instance) error {
			if err := p.hasPlan(ctx, i, args[1]); err != nil {
				return err
			}
			i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: args[1], UID: uid}
			return nil
		})
		if err != nil {
			return err
		}
		if err := p.leaveNote(ctx, act.ReasonTriggered); err != nil {
			return err
		}
		said := fmt.Sprintf("instance/%s plan %s requested", p.name.Name, args[1])
		if p.Env.KUDO {
			said = fmt.Sprintf("Triggered %s plan for %s instance", args[1], p.name)
		}
		return p.done(said, func() error {
			if err := p.follow(ctx, func(x *v1beta1.Execution) bool { return x.UID == uid }); err != nil {
				return err
			}
			// the manager then removes the request; a command that comes next would meet that
			return p.until(ctx, func(i *v1beta1.Instance) (bool, error) { return i.Spec.PlanExecution.UID != uid, nil }, func() {})
		})
	})))
}

func (p *planner) explain(ctx context.Context) (plans.Explanation, error) {
	e, err := plans.Explain(ctx, p.Client, p.name)
	if errors.Is(err, plans.ErrNotFound) {
		err = command.NotFound(ctx, p.Client, v1beta1.GroupVersion.WithKind("Instance"), p.name.Namespace, p.name.Name)
	}
	return e, err
}

// hasPlan is an error if a plan surely does not exist.
func (p *planner) hasPlan(ctx context.Context, i *v1beta1.Instance, plan string) error {
	version := &v1beta1.OperatorVersion{}
	if err := p.Client.Get(ctx, choice.VersionKey(i.Namespace, &i.Spec), version); err != nil {
		return nil //nolint:nilerr // what may not be looked at may have it
	}
	if _, has := version.Spec.Plans[plan]; has {
		return nil
	}
	known := slices.Sorted(maps.Keys(version.Spec.Plans))
	if near := nearest.Meant(plan, known); near != "" {
		return fmt.Errorf("no plan %s; did you mean %s?", plan, near)
	}
	return fmt.Errorf("no plan %s; choose from %s", plan, strings.Join(known, ", "))
}

func newPlanAbandon(p *planner) *cobra.Command {
	return p.gives(p.waits(p.command("abandon INSTANCE", "Abandon the running plan", "abandon zookeeper -n shop --reason \"the disk is full\"", 1, func(ctx context.Context, _ []string) error {
		uid, err := p.order(ctx, act.ReasonAbandoned, func(i *v1beta1.Instance, who act.Author) error {
			if x := i.Status.Execution; x == nil || x.FinishedAt != nil {
				return errors.New("no plan is running")
			}
			return act.Order(i, vocabulary.AbandonPlan, who)
		})
		if err != nil {
			return err
		}
		return p.done("instance/"+p.name.Name+" abandon of the running plan requested", func() error {
			return p.until(ctx, func(i *v1beta1.Instance) (bool, error) {
				x := i.Status.Execution
				return x == nil || x.UID != uid || x.FinishedAt != nil, nil
			}, func() {})
		})
	})))
}

func newPlanRetry(p *planner) *cobra.Command {
	return p.gives(p.waits(p.command("retry INSTANCE", "Retry the plan that has failed, from the step that failed", "retry zookeeper -n shop --wait", 1, func(ctx context.Context, _ []string) error {
		uid, err := p.order(ctx, act.ReasonRetried, act.RetryPlan)
		if err != nil {
			return err
		}
		return p.done("instance/"+p.name.Name+" retry of the last plan requested", func() error {
			return p.follow(ctx, func(x *v1beta1.Execution) bool { return x.UID != uid })
		})
	})))
}

func (p *planner) waits(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&p.wait, "wait", false, "wait until the plan has ended, and show its progress; the exit code is 1 if it does not succeed")
	cmd.Flags().DurationVar(&p.timeout, "timeout", 0, "how long to wait; 0 is no limit")
	return cmd
}

func (p *planner) gives(cmd *cobra.Command) *cobra.Command {
	return p.AddFlags(cmd, "the reason to record, with your name, in an Event; history shows it")
}

func (p *planner) order(ctx context.Context, word rollout.Reason, give func(*v1beta1.Instance, act.Author) error) (uid types.UID, err error) {
	p.Identify(ctx)
	err = p.change(ctx, func(i *v1beta1.Instance) error {
		if err := give(i, p.Who); err != nil {
			return err
		}
		uid = i.Status.Execution.UID
		return nil
	})
	if err != nil {
		return "", err
	}
	return uid, p.leaveNote(ctx, word)
}

func (p *planner) leaveNote(ctx context.Context, word rollout.Reason) error {
	if p.DryRun.On() {
		return nil
	}
	p.Identify(ctx)
	return act.RecordEvent(ctx, p.Client, act.About(v1beta1.GroupVersion.WithKind(describe.KindInstance), p.changed), word, p.Who, p.Env.Now())
}

func (p *planner) change(ctx context.Context, edit func(*v1beta1.Instance) error) error {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: p.name.Namespace, Name: p.name.Name}}
	err := act.Apply(ctx, p.Client, i, func() error {
		if err := edit(i); err != nil {
			return fmt.Errorf("instance/%s: %w", p.name.Name, err)
		}
		return nil
	})
	p.changed = i
	return err
}

func (p *planner) done(said string, wait func() error) error {
	if err := act.Show(p.out, p.Output, p.Client, said+p.DryRun.Note(), p.changed); err != nil || !p.wait {
		return err
	}
	return wait()
}

func (p *planner) command(use, short, example string, n int, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: "  spillway plan " + example, Args: command.Exactly(n, "see the usage: spillway plan "+use),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := command.Instance(args[0])
			if err = errors.Join(err, command.CheckWait(p.wait, p.timeout)); p.wait && p.DryRun.On() {
				err = errors.Join(err, errors.New("--wait: a dry run starts no plan to wait for; leave --wait or --dry-run out"))
			}
			if err != nil {
				return err
			}
			if err := p.Connect(); err != nil {
				return err
			}
			p.out, p.name = cmd.OutOrStdout(), types.NamespacedName{Namespace: p.Namespace, Name: name}
			return run(cmd.Context(), args)
		},
	}
	p.Cluster.AddNamespacedFlags(cmd.Flags())
	return cmd
}

const (
	// redrawEvery is how often the times are drawn again while nothing else changes.
	redrawEvery = time.Second
	// watchAgain is how long to wait before a watch that has ended is begun again.
	watchAgain = time.Second
)

// errWatchEnded: the API server ends every watch after a while.
var errWatchEnded = errors.New("the watch has ended")

var errDeleted = errors.New("was deleted")

type absentError struct{ error }

// follow tells how an execution goes until it has ended, or something else keeps
// it from beginning.
func (p *planner) follow(ctx context.Context, is func(*v1beta1.Execution) bool) error {
	seen, draw := p.drawing()
	return p.until(ctx, func(i *v1beta1.Instance) (bool, error) {
		x := i.Status.Execution
		if x == nil || !is(x) {
			return false, stalled(i)
		}
		*seen = i
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

// drawing returns where the Instance is kept that is shown, and what shows it again.
func (p *planner) drawing() (seen **v1beta1.Instance, draw func()) {
	view, seen := p.view(), new(*v1beta1.Instance)
	return seen, func() {
		if *seen != nil {
			view.show(*seen, p.Env.Now())
		}
	}
}

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

// settled waits until the manager has done all that the spec of a generation asks for. The
// error says why it does not.
func (p *planner) settled(ctx context.Context, generation int64) error {
	seen, draw := p.drawing()
	return p.until(ctx, func(i *v1beta1.Instance) (bool, error) {
		if i.Status.ObservedGeneration < generation {
			return false, nil
		}
		if x := i.Status.Execution; x != nil && (x.FinishedAt == nil || choice.SameTarget(i.Namespace, &x.Spec, &i.Spec)) {
			*seen = i
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

// deleted waits until an Instance, and all that its cleanup plan waits for, is deleted. That a plan
// failed before keeps nothing from being deleted.
func (p *planner) deleted(ctx context.Context, uid types.UID) error {
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

type view interface {
	show(i *v1beta1.Instance, now time.Time)
}

// view is a tree that changes in place on a terminal, and lines elsewhere; and
// nothing if something else reads what is printed at the end.
func (p *planner) view() view {
	switch {
	case p.Output != "":
		return blindView{}
	case display.Redraws(p.out):
		return &liveView{out: p.out, size: func() (int, int) { return display.TerminalSize(p.out) }}
	default:
		return &lineView{out: p.out, steps: map[string]v1beta1.ExecutionStatus{}}
	}
}

type blindView struct{}

func (blindView) show(*v1beta1.Instance, time.Time) {}

// lineView writes a line for whatever has changed, for logs and pipes.
type lineView struct {
	out io.Writer
	// told is the last line of the plan, steps the states that were written.
	told  string
	steps map[string]v1beta1.ExecutionStatus
}

func (v *lineView) show(i *v1beta1.Instance, now time.Time) {
	s := &i.Status
	plan := s.PlanStatus[s.Execution.Plan]
	for p := range plan.Phases {
		for j := range plan.Phases[p].Steps {
			v.step(plan.Phases[p].Name, &plan.Phases[p].Steps[j], now)
		}
	}
	line := fmt.Sprintf("plan %s %s", s.Execution.Plan, plan.Status)
	if s.Place != "" {
		line += " at " + s.Place
	}
	if s.WaitingFor != "" {
		line += ": " + s.WaitingFor
	}
	if line != v.told {
		_, _ = fmt.Fprintln(v.out, line)
		v.told = line
	}
}

func (v *lineView) step(phase string, s *v1beta1.StepStatus, now time.Time) {
	key := phase + "/" + s.Name
	if v.steps[key] == s.Status {
		return
	}
	v.steps[key] = s.Status
	if s.Status == v1beta1.Error || s.Status.IsTerminal() {
		_, _ = fmt.Fprintln(v.out, strings.TrimRight(fmt.Sprintf("step %s %s %s", key, s.Status, display.StepTook(s, now)), " "))
	}
}

// liveView draws the tree over the one that it has drawn before.
type liveView struct {
	out  io.Writer
	size func() (width, height int)
	// drawn is how many lines it has drawn.
	drawn int
}

// eraseBelow moves to the beginning of a line so many lines above, and erases what
// is below.
const eraseBelow = "\r\x1b[%dA\x1b[J"

func (v *liveView) show(i *v1beta1.Instance, now time.Time) {
	width, height := v.size()
	lines := frame(plans.ExplanationOf(i), now, width, height)
	if v.drawn > 0 {
		_, _ = fmt.Fprintf(v.out, eraseBelow, v.drawn)
	}
	_, _ = fmt.Fprintln(v.out, strings.Join(lines, "\n"))
	v.drawn = len(lines)
}

// frame is what fits on a terminal, the line below included at which the cursor
// rests. If not all does, phases without a running step are shown without
// their steps; and if that is not enough, the end is cut off.
func frame(e plans.Explanation, now time.Time, width, height int) []string {
	lines := drawn(e, now, display.EveryPhase)
	if len(lines) >= height {
		lines = drawn(e, now, isOpen)
	}
	if hidden := len(lines) - (height - 1); hidden > 0 && height > 2 {
		lines = append(lines[:height-2], fmt.Sprintf("... and %d more lines", hidden+1))
	}
	for i, line := range lines {
		lines[i] = display.Cut(strings.TrimRight(line, " "), width)
	}
	return lines
}

func drawn(e plans.Explanation, now time.Time, unfolded func(*v1beta1.PhaseStatus) bool) []string {
	var b strings.Builder
	display.PlanTree(&b, display.Style{}, e, now, unfolded)
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// isOpen is true of a phase in which something happens, or has failed.
func isOpen(p *v1beta1.PhaseStatus) bool {
	return p.Status == v1beta1.InProgress || p.Status == v1beta1.FatalError
}
