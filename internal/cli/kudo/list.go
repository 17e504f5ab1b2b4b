package kudo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/packages"
)

// listing is what the commands have in common that list parts of a package.
type listing struct {
	settings

	output                               string
	descriptions, required, names, tasks bool
}

func (g *grammar) list() *cobra.Command {
	return group("list", "List parameters, plans or tasks of a package", g.listParameters(), g.listPlans(), g.listTasks())
}

func (g *grammar) listPart(l *listing, part string, write func(io.Writer, *packages.Package) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: part + " [PACKAGE]", Short: "List the " + part + " of a package, or of that in this directory",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.AtMost(1, "name a directory, an archive, a URL, or a package of the repository")(cmd, args); err != nil {
				return err
			}
			if len(args) == 0 {
				dir, err := packageHere()
				if err != nil {
					return err
				}
				args = []string{dir}
			}
			p, err := g.origin(&l.settings, false).Load(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return write(cmd.OutOrStdout(), p)
		},
	}
	l.addPackage(cmd.Flags())
	return cmd
}

func (g *grammar) listParameters() *cobra.Command {
	l := &listing{}
	cmd := g.listPart(l, "parameters", l.writeParameters)
	flags := cmd.Flags()
	flags.BoolVarP(&l.descriptions, "descriptions", "d", false, "also show descriptions")
	flags.BoolVarP(&l.required, "required", "r", false, "only parameters that are required and have no default")
	flags.BoolVar(&l.names, "names", false, "only names")
	flags.StringVarP(&l.output, "output", "o", "", "output format: yaml, json or json-schema (default: text)")
	return cmd
}

// columnWidth is how wide KUDO makes columns of parameters.
const columnWidth = 35

func (l *listing) writeParameters(w io.Writer, p *packages.Package) error {
	if l.required && l.names || l.required && l.descriptions || l.names && l.descriptions {
		return errors.New("--names: only one of --required, --names and --descriptions can be set")
	}
	all := slices.SortedFunc(slices.Values(p.Parameters), func(a, b packages.Parameter) int { return cmp.Compare(a.Name, b.Name) })
	if l.output != "" {
		return l.showParameters(w, p, all)
	}
	if l.required {
		all = slices.DeleteFunc(all, func(p packages.Parameter) bool { return !p.MustBeSet() })
	}
	if l.required && len(all) == 0 {
		_, _ = fmt.Fprintln(w, "no required parameters without default values found")
		return nil
	}
	rows := [][]string{l.row("Name", "Default", "Required", "Immutable", "Descriptions")}
	for i := range all {
		o, err := all[i].Object()
		if err != nil {
			return fmt.Errorf("parameter %s: %w", all[i].Name, err)
		}
		value := ""
		if o.Default != nil {
			value = *o.Default
		}
		rows = append(rows, l.row(o.Name, value, strconv.FormatBool(o.IsRequired()), strconv.FormatBool(o.IsImmutable()), o.Description))
	}
	writeTable(w, rows, columnWidth)
	return nil
}

// showParameters writes them for programs.
func (l *listing) showParameters(w io.Writer, p *packages.Package, all []packages.Parameter) error {
	switch l.output {
	case command.OutputYAML, command.OutputJSON:
		return command.Show(w, l.output, map[string]any{"apiVersion": v1beta1.GroupVersion.String(), "parameters": all}, nil)
	case command.OutputSchema:
		schema, err := p.SchemaOf(all)
		if err != nil {
			return err
		}
		return command.Show(w, l.output, schema, nil)
	default:
		return fmt.Errorf("--output: %q is not known; use yaml, json or json-schema", l.output)
	}
}

// row has the columns that are shown.
func (l *listing) row(cells ...string) []string {
	switch {
	case l.required, l.names:
		return cells[:1]
	case l.descriptions:
		return cells
	default:
		return cells[:len(cells)-1]
	}
}

// writeTable writes a table as KUDO does: columns of one width with a tab between them. Text
// that is wider is wrapped, and a word that is wider is cut.
func writeTable(w io.Writer, rows [][]string, widest int) {
	var lines [][]string
	for _, row := range rows {
		lines = append(lines, linesOf(row, widest)...)
	}
	widths := make([]int, len(rows[0]))
	for _, line := range lines {
		for k, cell := range line {
			widths[k] = max(widths[k], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		for k, cell := range line {
			line[k] += strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell))
		}
		_, _ = fmt.Fprintln(w, strings.Join(line, "\t"))
	}
}

// linesOf is a row with cells of a width, as lines beneath each other.
func linesOf(row []string, widest int) [][]string {
	var lines [][]string
	for k, cell := range row {
		for n, part := range display.Wrap(cell, widest) {
			if n == len(lines) {
				lines = append(lines, make([]string, len(row)))
			}
			lines[n][k] = shortened(part, widest)
		}
	}
	return lines
}

func shortened(word string, widest int) string {
	if utf8.RuneCountInString(word) <= widest {
		return word
	}
	return string([]rune(word)[:widest-3]) + "..."
}

func (g *grammar) listTasks() *cobra.Command {
	return g.listPart(&listing{}, "tasks", func(w io.Writer, p *packages.Package) error {
		rows := [][]string{{"Name", "Kind", "Resources"}}
		for i := range p.Operator.Tasks {
			t := &p.Operator.Tasks[i]
			rows = append(rows, []string{t.Name, t.Kind, fmt.Sprint(t.Spec.Resources)})
		}
		const unlimited = 1 << 20
		writeTable(w, rows, unlimited)
		return nil
	})
}

func (g *grammar) listPlans() *cobra.Command {
	l := &listing{}
	cmd := g.listPart(l, "plans", l.writePlans)
	cmd.Flags().BoolVarP(&l.tasks, "with-tasks", "t", false, "also show what the tasks do")
	return cmd
}

func (l *listing) writePlans(w io.Writer, p *packages.Package) error {
	if len(p.Operator.Plans) == 0 {
		_, _ = fmt.Fprintln(w, "no plans found")
		return nil
	}
	var plans []node
	for _, name := range slices.Sorted(maps.Keys(p.Operator.Plans)) {
		plan := p.Operator.Plans[name]
		n := node{text: fmt.Sprintf("%s (%s)", name, strategy(plan.Strategy))}
		for i := range plan.Phases {
			n.children = append(n.children, l.phase(&plan.Phases[i], &p.Operator))
		}
		plans = append(plans, n)
	}
	_, _ = fmt.Fprintln(w, "plans")
	writeNodes(w, plans, "")
	_, _ = fmt.Fprintln(w)
	return nil
}

func (l *listing) phase(phase *v1beta1.Phase, operator *packages.Operator) node {
	n := node{text: fmt.Sprintf("[phase]  %s (%s)", phase.Name, strategy(phase.Strategy))}
	for i := range phase.Steps {
		step := node{text: "[step]  " + phase.Steps[i].Name}
		for _, name := range phase.Steps[i].Tasks {
			step.children = append(step.children, l.task(name, operator))
		}
		n.children = append(n.children, step)
	}
	return n
}

// task is a task with what it uses, if that is shown.
func (l *listing) task(name string, operator *packages.Operator) node {
	t := operator.Task(name)
	if t == nil || !l.tasks {
		return node{text: name}
	}
	n := node{text: fmt.Sprintf("[%s]  %s", strings.ToLower(t.Kind), name)}
	if t.Spec.Parameter != "" {
		n.children = append(n.children, node{text: "[parameter]  " + t.Spec.Parameter})
	}
	for _, what := range packages.UsedBy(t) {
		n.children = append(n.children, node{text: what})
	}
	return n
}
