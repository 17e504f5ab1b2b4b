package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// planner is what the commands about plans have in common.
type planner struct {
	cluster cluster
	output  string
	reason  string
	wait    bool
	timeout time.Duration

	now    func() time.Time
	out    io.Writer
	client client.WithWatch
	name   types.NamespacedName
}

func newPlan(env Environment) *cobra.Command {
	cmd := &cobra.Command{Use: "plan", Short: "See and steer the plans of an Instance"}
	for _, add := range []func(*planner) *cobra.Command{newPlanStatus, newPlanHistory, newPlanTrigger, newPlanAbandon, newPlanRetry} {
		cmd.AddCommand(add(&planner{now: env.Now}))
	}
	return cmd
}

// command is one of them; run has a client and the Instance's name.
func (p *planner) command(use, short string, n int, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: exactly(n, "see the usage: spillway plan "+use),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := p.cluster.namespaced()
			if err != nil {
				return err
			}
			if p.client, err = p.cluster.watcher(); err != nil {
				return err
			}
			p.out, p.name = cmd.OutOrStdout(), types.NamespacedName{Namespace: namespace, Name: instanceName(args[0])}
			return run(cmd.Context(), args)
		},
	}
	p.cluster.addFlags(cmd.Flags())
	p.cluster.addNamespaceFlag(cmd.Flags())
	return cmd
}

// instanceName takes a name as kubectl does, with or without the kind.
func instanceName(arg string) string {
	if kind, name, ok := strings.Cut(arg, "/"); ok && isInstanceKind(kind) {
		return name
	}
	return arg
}

func isInstanceKind(kind string) bool {
	return slices.Contains([]string{"instance", "instances", "instance.kudo.dev", "instances.kudo.dev"}, strings.ToLower(kind))
}

func (p *planner) waits(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&p.wait, "wait", false, "wait until the plan has ended, and tell how it goes; the exit code is 1 if it does not succeed")
	cmd.Flags().DurationVar(&p.timeout, "timeout", 0, "how long to wait, 0 for as long as it takes")
	return cmd
}

func (p *planner) gives(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&p.reason, "reason", "", "why; it is kept in the history")
	return cmd
}

func newPlanStatus(p *planner) *cobra.Command {
	cmd := p.command("status INSTANCE", "Show the plan that runs, or the last one that ran", 1, func(ctx context.Context, _ []string) error {
		e, err := plans.Explain(ctx, p.client, p.name)
		if err != nil {
			return err
		}
		var ended error
		if p.wait && e.UID != "" {
			ended = p.follow(ctx, func(x *v1beta1.Execution) bool { return x.UID == e.UID })
			if p.output == "" {
				return ended
			}
			if e, err = plans.Explain(ctx, p.client, p.name); err != nil {
				return err
			}
		}
		return errors.Join(show(p.out, p.output, e, func(w io.Writer) { writePlan(w, e, p.now()) }), ended)
	})
	outputFlag(cmd, &p.output)
	return p.waits(cmd)
}

func newPlanHistory(p *planner) *cobra.Command {
	cmd := p.command("history INSTANCE", "List the last executions, the newest first", 1, func(ctx context.Context, _ []string) error {
		e, err := plans.Explain(ctx, p.client, p.name)
		if err != nil {
			return err
		}
		return show(p.out, p.output, e.History, func(w io.Writer) { writeHistory(w, e.History) })
	})
	outputFlag(cmd, &p.output)
	return cmd
}

func newPlanTrigger(p *planner) *cobra.Command {
	return p.waits(p.command("trigger INSTANCE PLAN", "Run a plan", 2, func(ctx context.Context, args []string) error {
		uid := uuid.NewUUID()
		err := p.change(ctx, func(i *v1beta1.Instance) error {
			i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: args[1], UID: uid}
			return nil
		})
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(p.out, "instance/%s is asked to run plan %s\n", p.name.Name, args[1])
		return p.followIf(ctx, func(x *v1beta1.Execution) bool { return x.UID == uid })
	}))
}

func newPlanAbandon(p *planner) *cobra.Command {
	return p.gives(p.waits(p.command("abandon INSTANCE", "Give up the plan that runs", 1, func(ctx context.Context, _ []string) error {
		uid, err := p.order(ctx, vocabulary.AbandonPlan, func(x *v1beta1.Execution) error {
			if x == nil || x.FinishedAt != nil {
				return errors.New("no plan runs; there is nothing to give up")
			}
			return nil
		})
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(p.out, "instance/%s is asked to give up its plan\n", p.name.Name)
		if !p.wait {
			return nil
		}
		return p.until(ctx, func(i *v1beta1.Instance) (bool, error) {
			x := i.Status.Execution
			return x == nil || x.UID != uid || x.FinishedAt != nil, nil
		}, func() {})
	})))
}

func newPlanRetry(p *planner) *cobra.Command {
	return p.gives(p.waits(p.command("retry INSTANCE", "Try the plan that has failed again, from the step that failed", 1, func(ctx context.Context, _ []string) error {
		uid, err := p.order(ctx, vocabulary.RetryPlan, func(x *v1beta1.Execution) error {
			if x == nil || x.Result != v1beta1.ResultFailed && x.Result != v1beta1.ResultAbandoned {
				return errors.New("the last plan has not failed, nor was it given up; there is nothing to try again")
			}
			return nil
		})
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(p.out, "instance/%s is asked to try its plan again\n", p.name.Name)
		return p.followIf(ctx, func(x *v1beta1.Execution) bool { return x.UID != uid })
	})))
}

// order annotates the Instance with an order about its execution.
func (p *planner) order(ctx context.Context, key vocabulary.Key, check func(*v1beta1.Execution) error) (uid types.UID, err error) {
	by := whoami(ctx, p.client)
	err = p.change(ctx, func(i *v1beta1.Instance) error {
		if err := check(i.Status.Execution); err != nil {
			return err
		}
		uid = i.Status.Execution.UID
		raw, err := json.Marshal(map[string]string{"uid": string(uid), "by": by, "reason": p.reason})
		if err != nil {
			return fmt.Errorf("encode the order: %w", err)
		}
		if i.Annotations == nil {
			i.Annotations = map[string]string{}
		}
		i.Annotations[key.Native] = string(raw)
		return nil
	})
	return uid, err
}

// change changes the Instance, if it is as it was seen; if it is not, it is looked at
// again, since the manager writes there too.
func (p *planner) change(ctx context.Context, change func(*v1beta1.Instance) error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return p.tryChange(ctx, change) })
	if apierrors.IsConflict(err) {
		return fmt.Errorf("instance %s was changed by somebody else at the same moment; look again", p.name.Name)
	}
	return err //nolint:wrapcheck // tryChange has wrapped it
}

func (p *planner) tryChange(ctx context.Context, change func(*v1beta1.Instance) error) error {
	i, err := p.instance(ctx)
	if err != nil {
		return err
	}
	before := i.DeepCopy()
	if err := change(i); err != nil {
		return fmt.Errorf("instance %s: %w", p.name.Name, err)
	}
	err = p.client.Patch(ctx, i, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(commandOwner))
	if err != nil {
		return fmt.Errorf("change instance %s: %w", p.name.Name, err)
	}
	return nil
}

func (p *planner) instance(ctx context.Context) (*v1beta1.Instance, error) {
	i := &v1beta1.Instance{}
	if err := p.client.Get(ctx, p.name, i); err != nil {
		return nil, fmt.Errorf("get instance %s in namespace %s: %w", p.name.Name, p.name.Namespace, err)
	}
	return i, nil
}

func writeHistory(w io.Writer, history []v1beta1.PastExecution) {
	if len(history) == 0 {
		_, _ = fmt.Fprintln(w, "No plan has ended yet.")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(t, "PLAN\tRESULT\tSTARTED\tTOOK\tOPERATORVERSION\tCAUSE\tMESSAGE")
	for _, past := range history {
		cause := string(past.Cause)
		if past.Changed != "" {
			cause += " (" + past.Changed + ")"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", past.Plan, past.Result, past.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC"),
			past.FinishedAt.Sub(past.StartedAt.Time).Round(100*time.Millisecond), past.OperatorVersion, cause, past.Message)
	}
	_ = t.Flush() // to a writer that the caller chose
}
