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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

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
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// planner is what the commands about plans have in common.
type planner struct {
	act.Person

	wait    bool
	timeout time.Duration
	out     io.Writer
	name    types.NamespacedName
	// changed is the Instance that was changed, as it was written.
	changed *v1beta1.Instance
}

// New returns the command plan with the commands beneath it.
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

// explain says how the plans of the Instance stand.
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

// gives lets a command that changes something say why, and what it prints.
func (p *planner) gives(cmd *cobra.Command) *cobra.Command {
	p.AddFlags(cmd, "the reason to record, with your name, in an Event; history shows it")
	return cmd
}

// order gives an order about the execution of the Instance, and records it in a word.
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

// leaveNote records in an Event who wanted what was done.
func (p *planner) leaveNote(ctx context.Context, word rollout.Reason) error {
	if p.DryRun.On() {
		return nil
	}
	p.Identify(ctx)
	return act.RecordEvent(ctx, p.Client, act.About(v1beta1.GroupVersion.WithKind(describe.KindInstance), p.changed), word, p.Who, p.Env.Now())
}

// change changes the Instance, if it is still as it was read.
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

// done tells what was requested, and waits until it has ended if that was asked for.
func (p *planner) done(said string, wait func() error) error {
	if err := act.Show(p.out, p.Output, p.Client, said+p.DryRun.Note(), p.changed); err != nil || !p.wait {
		return err
	}
	return wait()
}

// checkDryRun refuses to wait for what is not requested.
func (p *planner) checkDryRun() error {
	if p.wait && p.DryRun.On() {
		return errors.New("--wait: a dry run starts no plan to wait for; leave --wait or --dry-run out")
	}
	return nil
}

// command is one of them; run has a client and the Instance's name.
func (p *planner) command(use, short, example string, n int, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: "  spillway plan " + example, Args: command.Exactly(n, "see the usage: spillway plan "+use),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := command.Instance(args[0])
			if err := errors.Join(err, command.CheckWait(p.wait, p.timeout), p.checkDryRun()); err != nil {
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
