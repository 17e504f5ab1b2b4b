package offline

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// NewReplay returns the command replay.
func NewReplay(env command.Environment) *cobra.Command {
	output, export := "", false
	cmd := &cobra.Command{
		Use:   "replay PATH...",
		Short: "Decide again what a manager has decided",
		Long: "Decide again what a manager has decided, from what it was decided from: the folder of\n" +
			"its flag --record-decisions, or a file that --export has written. The same version\n" +
			"decides the same; of another one, every decision that differs is shown. The exit code\n" +
			"is 1 if one does. No cluster is asked.",
		Example: "  spillway replay record\n" +
			"  kubectl exec deploy/spillway -- /spillway replay /decisions --export > record",
		Args: command.AtLeast(1, "name the folder of --record-decisions, or a file that --export has written"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if export {
				return replay.Export(cmd.OutOrStdout(), args)
			}
			r, err := replay.Again(command.CurrentVersion(), args)
			if err != nil {
				return err
			}
			if err := command.Show(cmd.OutOrStdout(), output, r, func(w io.Writer) { writeReplayed(w, &r) }); err != nil {
				return err
			}
			return verdict(&r)
		},
	}
	cmd.Flags().BoolVar(&export, "export", false, "write all decisions to standard output, as one file")
	command.OutputFlag(cmd, &output)
	return cmd
}

// writeReplayed shows people what differs.
func writeReplayed(w io.Writer, r *replay.Replayed) {
	for _, d := range r.Differing {
		_, _ = fmt.Fprintf(w, "%s  %s\n", d.At.UTC().Format(time.DateTime+" UTC"), d.Of)
		for _, line := range d.Differences {
			display.WriteHanging(w, "  ", line)
		}
	}
	if r.Decisions == 0 {
		_, _ = fmt.Fprintln(w, "nothing was decided yet")
		return
	}
	outcome := fmt.Sprintf("spillway %s decides all of them in the same way", r.Version)
	if n := len(r.Differing); n > 0 {
		outcome = fmt.Sprintf("spillway %s decides %d of them in another way", r.Version, n)
	}
	display.WriteHanging(w, "", fmt.Sprintf("%s of spillway %s, from %s to %s: %s", report.Plural(r.Decisions, "decision"),
		strings.Join(r.Versions, ", "), r.From.UTC().Format(time.DateTime), r.To.UTC().Format(time.DateTime+" UTC"), outcome))
}

// verdict is an error if something differs.
func verdict(r *replay.Replayed) error {
	if n := len(r.Differing); n > 0 {
		return command.ExitError{Err: errors.New(report.Plural(n, "decision") + " differ"), Code: 1, Said: true}
	}
	return nil
}

// shadow is one run of the command upgrade.
type shadow struct {
	simulation

	shadow    bool
	decisions []string
}

// shadowed is what came of it, for machines.
type shadowed struct {
	// Decided is what was recorded, nil if nothing was given.
	Decided *replay.Replayed `json:"decided,omitempty"`
	// Begins are the steps that this version takes in the cluster as it is.
	Begins []record.Step `json:"begins"`
}

// NewUpgrade returns the command upgrade.
func NewUpgrade(env command.Environment) *cobra.Command {
	s := &shadow{simulation: simulation{env: env, called: "upgrade", fromCluster: true, nodes: 1}}
	cmd := &cobra.Command{
		Use:   "upgrade --shadow",
		Short: "Show what this version would decide in another way, before it is installed",
		Long: "Show what this version of Spillway would decide in another way than the one that is\n" +
			"installed, before it is: in what that has decided lately, as its flag\n" +
			"--record-decisions has recorded it, and in the cluster as it is now, which is read\n" +
			"with your permissions and never written. The exit code is 1 if a decision differs, or\n" +
			"if this version would begin something, or go on with it.\n" +
			"\n" +
			"Give it the flags of the rings that the manager has. Upgrade as you have installed it,\n" +
			"such as with spillway install.",
		Example: "  spillway upgrade --shadow --decisions decisions\n" +
			"  spillway upgrade --shadow --max-rolling=5",
		Args: command.None("name the decisions with --decisions"),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&s.shadow, "shadow", false, "decide beside the manager that is installed, and change nothing")
	flags.StringArrayVar(&s.decisions, "decisions", nil, "what was recorded: the folder of --record-decisions, or a file that spillway replay --export has written; repeat it for several")
	flags.StringVarP(&s.namespace, "namespace", "n", "", "read this namespace alone (default: all)")
	s.rings.Add(flags)
	s.cluster.AddFlags(flags)
	command.OutputFlag(cmd, &s.output)
	return cmd
}

func (s *shadow) run(cmd *cobra.Command) error {
	if !s.shadow {
		return errors.New("spillway upgrade changes nothing: add --shadow to see what this version would decide in another way, and upgrade as you have installed it, such as with spillway install")
	}
	r := &shadowed{}
	if len(s.decisions) > 0 {
		decided, err := replay.Again(command.CurrentVersion(), s.decisions)
		if err != nil {
			return fmt.Errorf("--decisions: %w", err)
		}
		r.Decided = &decided
	}
	begins, err := s.begins(cmd)
	if err != nil {
		return err
	}
	r.Begins = begins
	if err := command.Show(cmd.OutOrStdout(), s.output, r, r.write); err != nil {
		return err
	}
	if r.Decided != nil && len(r.Decided.Differing) > 0 {
		return verdict(r.Decided)
	}
	if n := len(r.Begins); n > 0 {
		return command.ExitError{Err: errors.New(report.Plural(n, "step")), Code: 1, Said: true}
	}
	return nil
}

// write shows people what differs, and what begins.
func (r *shadowed) write(w io.Writer) {
	if r.Decided != nil {
		writeReplayed(w, r.Decided)
	}
	if len(r.Begins) == 0 {
		_, _ = fmt.Fprintln(w, "in the cluster as it is now, this version would begin nothing")
		return
	}
	_, _ = fmt.Fprintln(w, "in the cluster as it is now, this version would begin, or go on with:")
	for i := range r.Begins {
		step := &r.Begins[i]
		display.WriteHanging(w, fmt.Sprintf("  %-6s ", step.Ring), step.Namespace+" "+step.String())
	}
}

// begins are the steps that this version takes in the cluster without any change.
func (s *shadow) begins(cmd *cobra.Command) ([]record.Step, error) {
	o, err := s.options()
	if err != nil {
		return nil, err
	}
	s.everywhere = s.namespace == ""
	if err := s.look(cmd.Context(), &o, nil); err != nil {
		return nil, err
	}
	o.Namespace = s.namespace
	result, err := s.play(cmd, nil, nil, o)
	return result.Steps, err
}
