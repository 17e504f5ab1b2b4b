package kudo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/cli/offline"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/packages"
)

const packageWord = "package"

// add also takes KUDO's form, which names no directory, and asks for what is not given.
func (g *grammar) add() *cobra.Command {
	cmd := offline.NewAdd()
	for _, part := range cmd.Commands() {
		addHere(part)
	}
	return cmd
}

func addHere(cmd *cobra.Command) {
	check, run := cmd.Args, cmd.RunE
	cmd.Args = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if isNamed := len(args) == 2 && cmd.Name() == "maintainer"; len(args) == 0 || isNamed {
			dir, err := packageHere()
			if err != nil {
				return err
			}
			args = slices.Insert(args, 0, dir)
		}
		if len(args) == 1 {
			_ = cmd.Flags().Set("interactive", "true") // it has that flag
		}
		if err := check(cmd, args); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// packageHere is the directory in which KUDO's command finds the package to change.
func packageHere() (string, error) {
	for _, dir := range []string{".", "operator"} {
		if packages.IsPackage(dir) {
			return dir, nil
		}
	}
	return "", errors.New("there is no package in this directory, nor in operator; change to its directory, or name it, as in: kubectl kudo package list plans ./shop")
}

func (g *grammar) newPackage() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Write a new package to begin with, to the directory operator",
		RunE: func(cmd *cobra.Command, args []string) error {
			all := append([]string{packageWord, "new", "--dir", "operator"}, args...)
			return g.call(cmd, append(all, (&settings{}).passed(cmd)...)...)
		},
	}
	cmd.Flags().BoolP("interactive", "i", false, "ask what the package says of itself")
	cmd.Flags().BoolP("overwrite", "w", false, "replace the files of a package that exists")
	return cmd
}

func (g *grammar) create() *cobra.Command {
	var (
		destination, output string
		overwrite           bool
	)
	cmd := &cobra.Command{
		Use: "create DIR", Short: "Pack a package into an archive",
		Args: command.Exactly(1, "name the directory of a package"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" {
				if err := g.showVerdict(cmd, args[0], nil, output); err != nil {
					return err
				}
			}
			path, err := pack(args[0], destination, overwrite)
			if err != nil || output != "" {
				return err
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "Package created: %s\n", path)
			return nil
		},
	}
	cmd.Flags().StringVarP(&destination, "destination", "d", ".", "the directory to write the archive into")
	cmd.Flags().BoolVarP(&overwrite, "overwrite", "w", false, "replace an archive that exists")
	command.OutputFlag(cmd, &output)
	return cmd
}

// pack writes the archive of a package into a directory, and returns where. It replaces an archive
// only if that was asked for.
func pack(dir, destination string, overwrite bool) (path string, err error) {
	p, err := packages.Load(dir)
	if err != nil {
		return "", err
	}
	path = filepath.Join(destination, p.ArchiveName())
	if _, err := os.Stat(path); err == nil && !overwrite {
		return "", fmt.Errorf("%s exists; to replace it, add --overwrite", path)
	}
	if err := offline.Pack(p, path); err != nil {
		return "", err
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path, nil
}

func (g *grammar) repo() *cobra.Command {
	cmd := offline.NewRepo(g.env)
	index, _, err := cmd.Find([]string{"index"})
	if err != nil {
		return cmd
	}
	run := index.RunE
	index.RunE = func(cmd *cobra.Command, args []string) error {
		if flags := cmd.Flags(); !flags.Changed("url") && !flags.Changed("url-repo") {
			_ = flags.Set("url", "http://localhost") // as KUDO does
		}
		out := cmd.OutOrStdout()
		cmd.SetOut(io.Discard)
		if err := run(cmd, args); err != nil {
			return err
		}
		path, err := filepath.Abs(filepath.Join(args[0], "index.yaml"))
		_, _ = fmt.Fprintf(out, "index %s created.\n", path)
		return err //nolint:wrapcheck // of the working directory
	}
	return cmd
}

func (g *grammar) get() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "get instances|operators|operatorversions|all", Short: "List what is installed",
		Args: command.Exactly(1, "name instances, operators, operatorversions or all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" || args[0] != "instances" {
				all := append([]string{packageWord, "get", args[0]}, g.cluster()...)
				if output != "" {
					all = append(all, "-o", output)
				}
				return g.call(cmd, all...)
			}
			return g.writeInstances(cmd)
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}

func (g *grammar) writeInstances(cmd *cobra.Command) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	list := &v1beta1.InstanceList{}
	if err := c.List(cmd.Context(), list, client.InNamespace(g.namespace)); err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	var nodes []node
	for i := range list.Items {
		nodes = append(nodes, node{text: list.Items[i].Name})
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "List of current installed instances in namespace %q:\n", g.namespace)
	writeTree(cmd.OutOrStdout(), nodes)
	return nil
}

// verdict is the result of verify, in KUDO's shape.
type verdict struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
	Valid    bool     `json:"valid"`
}

func (v *verdict) write(w io.Writer) {
	for _, part := range []struct {
		heading string
		lines   []string
	}{{"Warnings", v.Warnings}, {"Errors", v.Errors}} {
		if len(part.lines) > 0 {
			_, _ = fmt.Fprintf(w, "%s\n%s\n", part.heading, strings.Join(part.lines, "\n"))
		}
	}
	if v.Valid {
		_, _ = fmt.Fprintln(w, "package is valid")
	}
}

func (g *grammar) verify() *cobra.Command {
	var (
		output string
		checks []string
	)
	cmd := &cobra.Command{
		Use: "verify PACKAGE", Short: "Check a package",
		Args: command.Exactly(1, "name the directory or the archive of a package"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, check := range checks {
				if !slices.Contains(parameterChecks, check) {
					return fmt.Errorf("--param-checks: %q is not known; use %s", check, strings.Join(parameterChecks, ", "))
				}
			}
			return g.showVerdict(cmd, args[0], checks, output)
		},
	}
	command.OutputFlag(cmd, &output)
	cmd.Flags().StringSliceVar(&checks, "param-checks", nil, "also check what parameters say to people: "+strings.Join(parameterChecks, ", "))
	return cmd
}

// showVerdict checks a package, with parameterChecks that are named, and fails if it has errors.
func (g *grammar) showVerdict(cmd *cobra.Command, from string, checks []string, output string) error {
	from = asPath(from)
	var raw bytes.Buffer
	failed := g.run(cmd.Context(), &raw, packageWord, "verify", from, "-o", "json")
	var findings []report.Finding
	if err := json.Unmarshal(raw.Bytes(), &findings); err != nil {
		if failed != nil {
			return failed
		}
		return fmt.Errorf("read the findings: %w", err)
	}
	v := verdict{Errors: []string{}, Warnings: []string{}, Valid: failed == nil}
	for i := range findings {
		f := &findings[i]
		text := fmt.Sprintf("%s: %s; %s [%s]", f.Place(), f.Message, f.Action, f.Code)
		if f.Level == report.Error {
			v.Errors = append(v.Errors, text)
		} else {
			v.Warnings = append(v.Warnings, text)
		}
	}
	if p, err := packages.Load(from); err == nil { // otherwise that is one of the errors
		v.Warnings = append(v.Warnings, undescribed(p, checks)...)
	}
	if err := command.Show(cmd.OutOrStdout(), output, &v, v.write); err != nil {
		return err
	}
	return failed
}

// asPath is a directory as a path: these commands do not look into repositories.
func asPath(dir string) string {
	if filepath.IsAbs(dir) || strings.HasPrefix(dir, ".") {
		return dir
	}
	return "./" + dir
}

var parameterChecks = []string{"display", "hint", "desc", "type", "hasgroup", "groups", "all"}

// undescribed says which parameters and groups say too little to those who set them, in KUDO's rules.
func undescribed(p *packages.Package, checks []string) (warnings []string) {
	warn := func(check, what, name, problem string) {
		if problem != "" && (slices.Contains(checks, check) || slices.Contains(checks, "all")) {
			warnings = append(warnings, fmt.Sprintf("%s %q %s", what, name, problem))
		}
	}
	for i := range p.Parameters {
		q := &p.Parameters[i]
		warn("display", "parameter", q.Name, untitled(q.DisplayName))
		warn("hint", "parameter", q.Name, unfinished("hint", q.Hint, "."))
		warn("desc", "parameter", q.Name, cmp.Or(unfinished("description", q.Description, ".!?)"), small("description", q.Description)))
		warn("type", "parameter", q.Name, unset("type", string(q.Type)))
		warn("hasgroup", "parameter", q.Name, unset("group", q.Group))
	}
	for _, group := range p.Groups {
		warn("groups", "group", group.Name, untitled(group.DisplayName))
		warn("groups", "group", group.Name, cmp.Or(unfinished("description", group.Description, ".!?)"), small("description", group.Description)))
	}
	return warnings
}

func unset(field, text string) string {
	if text == "" {
		return "has no " + field
	}
	return ""
}

func untitled(name string) string {
	if strings.HasSuffix(name, ":") {
		return "has a displayName that ends with ':'"
	}
	return cmp.Or(unset("displayName", name), small("displayName", name))
}

func small(field, text string) string {
	if first, _ := utf8.DecodeRuneInString(text); unicode.IsLower(first) {
		return "has a " + field + " that does not start with a capital letter"
	}
	return ""
}

// unfinished says that a text has no end that is wanted.
func unfinished(field, text, ends string) string {
	if text != "" && !strings.ContainsAny(text[len(text)-1:], ends) {
		return fmt.Sprintf("has a %s that does not end with one of %q", field, ends)
	}
	return unset(field, text)
}

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
