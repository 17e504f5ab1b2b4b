package offline

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/prove"
	"github.com/spillway-dev/spillway/internal/simulate"
)

type proof struct {
	simulation

	rules    []string
	failures int
	spend    time.Duration
}

const proveGuide = "https://github.com/spillway-dev/spillway/blob/main/docs/prove.md#rules"

// outputMarkdown is the form of a comment on a pull request.
const outputMarkdown = "markdown"

// mostMemory is what the garbage collector tries to keep the command below.
const mostMemory = 400 << 20

// NewProve returns the command prove.
func NewProve(env command.Environment) *cobra.Command {
	p := &proof{simulation: simulation{env: env, called: "prove"}}
	cmd := &cobra.Command{
		Use:   "prove -f DIR [--change FILE]",
		Short: "Explore what a change can do, over every single failure",
		Long: "Explore what a change can do, without a cluster, over every single failure: at every\n" +
			"moment a unit that does not become ready, or crashes and perhaps recovers, a Pod that\n" +
			"is lost with its node, a gate that is refused, a manager that stops at a write, a\n" +
			"write that is refused. In each state the rules are checked: budgets, zones and stages\n" +
			"at every instant, that a bad version stops, that a good change completes, that\n" +
			"whatever waits for ever says what to do. A rule that is broken is shown by the\n" +
			"shortest path to it, with what prevents it, and the exit code is 1. It runs the code\n" +
			"of the manager, as simulate does.\n" +
			"\n" +
			"Gates pass unless --gate says otherwise. Rules of your own are expressions over all\n" +
			"units, in a file that --rules names.",
		Example: "  spillway prove -f shop --change shop-next/config.yaml\n" +
			"  spillway prove -f shop --change next.yaml --rules rules.yaml -o markdown",
		Args: command.None("name manifests with -f"),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	flags := cmd.Flags()
	p.addFlags(flags)
	flags.StringArrayVar(&p.rules, "rules", nil, "a file of rules that must hold in every state; repeat it for several")
	flags.IntVar(&p.failures, "failures", 1, "how many things may go wrong one after the other; more than 1 seldom completes")
	flags.DurationVar(&p.spend, "within", 0, "end the exploration after this time, such as 30s; it is then a sample (default: until it is complete)")
	command.OutputFlag(cmd, &p.output, outputSARIF, outputMarkdown)
	return cmd
}

func (p *proof) run(cmd *cobra.Command) error {
	if p.failures < 0 {
		return fmt.Errorf("--failures: %d are too few; use 0 or more", p.failures)
	}
	if p.spend < 0 {
		return fmt.Errorf("--within: %s is not ahead; use a time such as 30s, or leave it out", p.spend)
	}
	rules, err := readRules(p.rules)
	if err != nil {
		return err
	}
	o := prove.Options{Failures: p.failures, Rules: rules}
	if o.Options, o.Base, o.Change, err = p.world(cmd); err != nil {
		return err
	}
	command.SpendMemory()
	debug.SetMemoryLimit(mostMemory)
	r, err := p.explore(cmd, o)
	if err != nil {
		return simulate.Locate(err, p.documents)
	}
	if err := p.show(cmd.OutOrStdout(), r); err != nil {
		return err
	}
	if n := len(r.Counterexamples); n > 0 {
		return command.ExitError{Err: errors.New(report.Plural(n, "broken rule")), Code: 1, Said: true}
	}
	return nil
}

func readRules(files []string) ([]*prove.UserRule, error) {
	var all []*prove.UserRule
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the user names it
		if err != nil {
			return nil, fmt.Errorf("--rules: %w", err)
		}
		rules, err := prove.ParseRules(text)
		if err != nil {
			return nil, fmt.Errorf("--rules: %s: %w", file, err)
		}
		all = append(all, rules...)
	}
	return all, nil
}

// explore explores the change, and says on a terminal how far that is.
func (p *proof) explore(cmd *cobra.Command, o prove.Options) (*prove.Report, error) {
	var visited atomic.Int64
	o.Progress = func(states int) { visited.Store(int64(states)) }
	if p.spend > 0 {
		until := p.env.Now().Add(p.spend)
		o.Over = func() bool { return p.env.Now().After(until) }
	}
	o.Now = o.Now.Truncate(time.Second)
	far := func() string { return fmt.Sprintf("exploring: %d states", visited.Load()) }
	return display.Working(cmd.Context(), display.NewProgress(cmd.ErrOrStderr(), p.env.Now), far, func() (*prove.Report, error) {
		r, err := prove.Run(cmd.Context(), o)
		if err == nil {
			err = prove.Prevent(cmd.Context(), o, r)
		}
		return r, err
	})
}

func (p *proof) show(w io.Writer, r *prove.Report) error {
	switch p.output {
	case outputSARIF:
		return showSARIF(w, p.findings(r), rulesOf(r))
	case outputMarkdown:
		_, err := io.WriteString(w, markdownOf(r))
		return err //nolint:wrapcheck // of the writer
	}
	return command.Show(w, p.output, r, func(w io.Writer) { p.write(w, r) })
}

// findings are the counterexamples, each at what it is about if a manifest has that, rather with the change, and at the
// change otherwise.
func (p *proof) findings(r *prove.Report) []report.Finding {
	all := make([]report.Finding, 0, len(r.Counterexamples))
	for i := range r.Counterexamples {
		c := &r.Counterexamples[i]
		f := report.Finding{Object: c.Object, Code: c.Rule, Level: report.Error, Message: headOf(c), Action: remedyOf(c)}
		for _, d := range slices.Backward(p.documents) {
			isIt := strings.EqualFold(d.Object.GetKind()+"/"+d.Object.GetName(), c.Object)
			if isIt || f.File == "" {
				f.File, f.Line = d.File, d.Line
			}
			if isIt {
				break
			}
		}
		all = append(all, f)
	}
	return all
}

// rulesOf are the rules that are built in, and those of the user that are broken.
func rulesOf(r *prove.Report) []report.Rule {
	builtIn := prove.Rules()
	all := make([]report.Rule, 0, len(builtIn))
	for _, code := range slices.Sorted(maps.Keys(builtIn)) {
		all = append(all, report.Rule{Code: code, Level: report.Error, Title: builtIn[code], Why: builtIn[code] + ".", Guide: proveGuide})
	}
	for i := range r.Counterexamples {
		if c := &r.Counterexamples[i]; builtIn[c.Rule] == "" {
			all = append(all, report.Rule{Code: c.Rule, Level: report.Error, Title: c.Sentence, Why: c.Sentence + ".", Guide: proveGuide})
		}
	}
	return all
}

func (p *proof) write(w io.Writer, r *prove.Report) {
	for i := range r.Counterexamples {
		c := &r.Counterexamples[i]
		display.WriteHanging(w, "✗ ", headOf(c))
		for _, l := range c.Timeline {
			mark := "  "
			if l.Failure {
				mark = "! "
			}
			display.WriteHanging(w, fmt.Sprintf("  %s%9s  ", mark, l.At), l.Text)
		}
		if c.Action != "" {
			display.WriteHanging(w, "  → ", remedyOf(c))
		}
	}
	for _, line := range summaryOf(r) {
		display.WriteHanging(w, "", line)
	}
}

func headOf(c *prove.Counterexample) string {
	text := c.Rule + ": "
	if c.Object != "" {
		text += c.Object + ": "
	}
	text += c.Sentence
	if c.Alike > 1 {
		text += fmt.Sprintf(" (and %s, equal but for names)", report.Plural(c.Alike-1, "other"))
	}
	return text
}

func remedyOf(c *prove.Counterexample) string {
	if c.Verified == "" {
		return c.Action
	}
	return c.Action + " (" + c.Verified + ")"
}

// summaryOf says what was explored, and what was found of a bad version.
func summaryOf(r *prove.Report) []string {
	how := "every state visited"
	parts := ""
	if r.Parts > 1 {
		parts = fmt.Sprintf(" in %d independent parts of %s", r.Parts, report.Plural(r.Kinds, "kind"))
	}
	if !r.Complete {
		how = "a sample: time ended the exploration"
	}
	failures := 0
	for _, n := range r.Failures {
		failures += n
	}
	lines := []string{fmt.Sprintf("%s%s, %s, %s, %s: %s",
		report.Plural(r.Units, "changed unit"), parts, report.Plural(failures, "failure"), report.Plural(r.States, "state"), report.Plural(r.Transitions, "transition"), how)}
	if len(r.Gates) > 0 {
		lines = append(lines, "gates that pass: "+strings.Join(r.Gates, ", "))
	}
	for _, reach := range r.Reach {
		lines = append(lines, fmt.Sprintf("%s: a version that %s gets to %d of %d units", reach.Rollout, reach.Bad, reach.Reached, reach.Units))
	}
	stops := make([]string, 0, len(r.Stops))
	for _, reason := range slices.Sorted(maps.Keys(r.Stops)) {
		stops = append(stops, fmt.Sprintf("%s (%s)", reason, report.Plural(r.Stops[reason], "final state")))
	}
	if len(stops) > 0 {
		lines = append(lines, "some failures need a person, and say so: "+strings.Join(stops, ", "))
	}
	if len(r.Counterexamples) == 0 {
		lines = append(lines, unbroken(r))
	}
	return lines
}

// unbroken says that no rule is broken, as far as that is known.
func unbroken(r *prove.Report) string {
	if !r.Complete {
		return "no rule is broken in the states that were visited"
	}
	return "no rule is broken"
}

// markdownOf is the report as a comment on a pull request.
func markdownOf(r *prove.Report) string {
	text := &strings.Builder{}
	if len(r.Counterexamples) == 0 {
		_, _ = fmt.Fprintf(text, "### Spillway: %s\n\n", unbroken(r))
	} else {
		_, _ = fmt.Fprintf(text, "### Spillway: %s\n\n", report.Plural(len(r.Counterexamples), "broken rule"))
	}
	for i := range r.Counterexamples {
		c := &r.Counterexamples[i]
		_, _ = fmt.Fprintf(text, "**%s**\n\n| time | |\n|---|---|\n", headOf(c))
		for _, l := range c.Timeline {
			line := l.Text
			if l.Failure {
				line = "**" + line + "**"
			}
			_, _ = fmt.Fprintf(text, "| %s | %s |\n", l.At, line)
		}
		if text.WriteString("\n"); c.Action != "" {
			text.WriteString(remedyOf(c) + "\n\n")
		}
	}
	for _, line := range summaryOf(r) {
		text.WriteString("- " + line + "\n")
	}
	return text.String()
}
