package kudo

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

func (g *grammar) planStatus() *cobra.Command {
	var (
		s      settings
		output string
	)
	cmd := &cobra.Command{
		Use: "status", Short: "Show the status of all plans of an Instance",
		RunE: func(cmd *cobra.Command, _ []string) error {
			words, err := s.about("plan", "status")
			if err != nil {
				return err
			}
			if s.wait {
				if err := g.run(cmd.Context(), io.Discard, append(append(words, g.cluster()...), s.passed(cmd)...)...); err != nil {
					return err
				}
			}
			i, c, err := g.read(cmd.Context(), &s)
			if err != nil {
				return err
			}
			v, err := versionOf(cmd.Context(), c, i)
			if err != nil {
				return err
			}
			return command.Show(cmd.OutOrStdout(), output, i.Status.PlanStatus, func(w io.Writer) { writePlans(w, i, v) })
		},
	}
	s.addInstance(cmd.Flags())
	s.addWait(cmd.Flags())
	command.OutputFlag(cmd, &output)
	return cmd
}

func (g *grammar) client() (client.Client, error) {
	cluster := command.Cluster{Kubeconfig: g.kubeconfig, Namespace: g.namespace}
	return cluster.Client()
}

func (g *grammar) read(ctx context.Context, s *settings) (*v1beta1.Instance, client.Client, error) {
	if _, err := s.about(); err != nil {
		return nil, nil, err
	}
	c, err := g.client()
	if err != nil {
		return nil, nil, err
	}
	i := &v1beta1.Instance{}
	i.Namespace, i.Name = g.namespace, s.instance
	return i, c, act.Get(ctx, c, i)
}

// writeHistory writes the plans that ran as KUDO does, all or those of an OperatorVersion: the
// newest first, with the one that is running.
func (g *grammar) writeHistory(w io.Writer, i *v1beta1.Instance, version string) {
	if version == "" {
		_, _ = fmt.Fprintf(w, "History of all plan-executions for %q in namespace %q:\n", i.Name, i.Namespace)
	} else {
		_, _ = fmt.Fprintf(w, "History of plan-executions for %q in namespace %q to operator-version %q:\n", i.Name, i.Namespace, version)
	}
	var nodes []node
	add := func(plan string, uid types.UID, of string, began time.Time) {
		if version == "" || of == version {
			nodes = append(nodes, node{text: fmt.Sprintf("%s-%s-%s (created %s ago)", i.Name, plan, uid, g.env.Now().Sub(began).Round(time.Second))})
		}
	}
	if x := i.Status.Running(); x != nil {
		add(x.Plan, x.UID, x.Spec.OperatorVersion.Name, x.StartedAt.Time)
	}
	for _, past := range i.Status.History {
		add(past.Plan, past.UID, past.OperatorVersion, past.StartedAt.Time)
	}
	writeTree(w, nodes)
}

func versionOf(ctx context.Context, c client.Client, i *v1beta1.Instance) (*v1beta1.OperatorVersion, error) {
	v := &v1beta1.OperatorVersion{}
	key := choice.VersionKey(i.Namespace, &i.Spec)
	v.Namespace, v.Name = key.Namespace, key.Name
	return v, act.Get(ctx, c, v)
}

const notActive = "NOT ACTIVE"

type node struct {
	text     string
	children []node
}

func writePlans(w io.Writer, i *v1beta1.Instance, v *v1beta1.OperatorVersion) {
	active := i.Status.AggregatedStatus.ActivePlan
	if x := i.Status.Execution; active == "" && x != nil {
		active = x.Plan
	}
	root := node{text: fmt.Sprintf("%s (Operator-Version: %q Active-Plan: %q)", i.Name, v.Name, active)}
	for _, name := range slices.Sorted(maps.Keys(v.Spec.Plans)) {
		root.children = append(root.children, planNode(name, v.Spec.Plans[name], i.Status.PlanStatus[name]))
	}
	_, _ = fmt.Fprintf(w, "Plan(s) for %q in namespace %q:\n", i.Name, i.Namespace)
	writeTree(w, []node{root})
}

func planNode(name string, plan v1beta1.Plan, status v1beta1.PlanStatus) node {
	text := fmt.Sprintf("Plan %s (%s strategy) [%s]", name, strategy(plan.Strategy), state(status.Status))
	if status.LastUpdatedTimestamp != nil {
		text += ", last updated " + status.LastUpdatedTimestamp.Format("2006-01-02 15:04:05")
	}
	n := node{text: text + reason(status.Message)}
	for i := range plan.Phases {
		phase := &plan.Phases[i]
		var at v1beta1.PhaseStatus
		if k := slices.IndexFunc(status.Phases, func(p v1beta1.PhaseStatus) bool { return p.Name == phase.Name }); k >= 0 {
			at = status.Phases[k]
		}
		p := node{text: fmt.Sprintf("Phase %s (%s strategy) [%s]", phase.Name, strategy(phase.Strategy), state(at.Status)) + reason(at.Message)}
		for j := range phase.Steps {
			step := &phase.Steps[j]
			var on v1beta1.StepStatus
			if k := slices.IndexFunc(at.Steps, func(s v1beta1.StepStatus) bool { return s.Name == step.Name }); k >= 0 {
				on = at.Steps[k]
			}
			p.children = append(p.children, node{text: fmt.Sprintf("Step %s [%s]", step.Name, state(on.Status)) + reason(on.Message)})
		}
		n.children = append(n.children, p)
	}
	return n
}

func strategy(s v1beta1.Ordering) v1beta1.Ordering { return cmp.Or(s, v1beta1.Parallel) }

func state(s v1beta1.ExecutionStatus) string {
	if s == "" || s == v1beta1.NeverRun {
		return notActive
	}
	return string(s)
}

func reason(message string) string {
	if message == "" {
		return ""
	}
	return " (" + message + ")"
}

func writeTree(w io.Writer, nodes []node) {
	_, _ = fmt.Fprintln(w, ".")
	writeNodes(w, nodes, "")
}

func writeNodes(w io.Writer, nodes []node, lead string) {
	for i, n := range nodes {
		branch, beneath := "├── ", "│   "
		if i == len(nodes)-1 {
			branch, beneath = "└── ", "    "
		}
		_, _ = fmt.Fprintln(w, lead+branch+n.text)
		writeNodes(w, n.children, lead+beneath)
	}
}
