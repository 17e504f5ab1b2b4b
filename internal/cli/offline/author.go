package offline

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/authoring"
	"github.com/spillway-dev/spillway/internal/packages/modern"
	"github.com/spillway-dev/spillway/internal/packages/origin"
)

// NewAdd returns the command add, which KUDO has as well.
func NewAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add", Short: "Add a parameter, a task, a plan or a maintainer to a package",
		Long: "Add a parameter, a task, a plan or a maintainer to the files of a package. What they have\n" +
			"already stays as it is, with its comments.",
	}
	cmd.AddCommand(newAddParameter(), newAddTask(), newAddPlan(), newAddMaintainer())
	return cmd
}

type addition struct {
	kind        string
	interactive bool
	// questions are for the flags of the command.
	questions func(*packages.Package) []question
	add       func(p *packages.Package, name string) error
}

// prepare makes the command run, with a flag to ask for what is not given.
func (a *addition) prepare(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&a.interactive, "interactive", "i", false, "ask for what is not given; the name may be left out")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if a.interactive && len(args) == 1 {
			return nil
		}
		return command.Exactly(2, "name the directory of a package and the "+a.kind+"; or name the directory, and add --interactive")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := packages.Load(args[0])
		if err != nil {
			return err
		}
		name := strings.Join(args[1:], "")
		if a.interactive {
			if err := a.interview(cmd, p, &name); err != nil {
				return err
			}
		}
		if err := a.add(p, name); err != nil {
			return err
		}
		return writeAdded(cmd, a.kind, name, args[0])
	}
	return cmd
}

// interview asks for the name and the flags that are not given.
func (a *addition) interview(cmd *cobra.Command, p *packages.Package, name *string) error {
	ask := newInterview(cmd)
	if *name == "" {
		if err := ask.ask("Name of the "+a.kind, name, isGiven); err != nil {
			return err
		}
	}
	return ask.askAll(cmd.Flags(), a.questions(p))
}

func writeAdded(cmd *cobra.Command, kind, name, dir string) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s added to %s\n", kind, name, dir)
	return err //nolint:wrapcheck // of the output
}

func newAddParameter() *cobra.Command {
	var (
		p                   authoring.Parameter
		value               string
		required, immutable bool
	)
	cmd := &cobra.Command{
		Use: "parameter DIR NAME", Short: "Add a parameter to a package",
		Long: "Add a parameter to params.yaml. A parameter without a default is required, unless\n" +
			"--required=false is given.",
		Example: "  spillway package add parameter ./shop COLOR --default blue --enum blue,red\n" +
			"  spillway package add parameter ./shop NODES --type integer --trigger scale",
	}
	flags := cmd.Flags()
	flags.StringVar(&p.Type, "type", "", `"string", "integer", "number", "boolean", "array" or "map" (default: string)`)
	flags.StringVar(&value, "default", "", "its default, in YAML")
	flags.StringVar(&p.Description, "description", "", "what it does")
	flags.StringVar(&p.DisplayName, "display-name", "", "its name for people")
	flags.StringVar(&p.Trigger, "trigger", "", "the plan that a change of it runs (default: update, else deploy)")
	flags.StringSliceVar(&p.Enum, "enum", nil, "the values that it may have")
	flags.BoolVar(&required, "required", true, "an Instance must set it, if it has no default")
	flags.BoolVar(&immutable, "immutable", false, "it cannot be changed after the Instance was created")
	add := func(to *packages.Package, name string) (err error) {
		p.Name = name
		if err := checkType(p.Type); err != nil {
			return err
		}
		if flags.Changed("default") {
			if p.Default, err = native(value, p.Type); err != nil {
				return err
			}
		}
		if flags.Changed("required") {
			p.Required = &required
		}
		if flags.Changed("immutable") {
			p.Immutable = &immutable
		}
		return authoring.AddParameter(to, &p)
	}
	return (&addition{kind: "parameter", questions: parameterQuestions, add: add}).prepare(cmd)
}

var types = []string{"", string(v1beta1.StringType), string(v1beta1.IntegerType), string(v1beta1.NumberType), string(v1beta1.BooleanType), string(v1beta1.ArrayType), string(v1beta1.MapType)}

func checkType(kind string) error {
	if !slices.Contains(types, kind) {
		return fmt.Errorf("--type: %q is not known; use %s", kind, strings.Join(types[1:], ", "))
	}
	return nil
}

// native is a value as params.yaml has it: a string stays one, whatever it looks like.
func native(value, kind string) (json.RawMessage, error) {
	if kind == "" || kind == string(v1beta1.StringType) {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("--default: %w", err)
		}
		return raw, nil
	}
	raw, err := yaml.YAMLToJSON([]byte(value))
	if err != nil {
		return nil, fmt.Errorf("--default: %q is no YAML", value)
	}
	return raw, nil
}

func newAddTask() *cobra.Command {
	var (
		t    v1beta1.Task
		keep []string
	)
	cmd := &cobra.Command{
		Use: "task DIR NAME", Short: "Add a task to a package",
		Example: "  spillway package add task ./shop web --kind Apply --resource web.yaml\n" +
			"  spillway package add task ./shop m --kind Toggle --parameter M --resource m\n" +
			"  spillway package add task ./shop k --kind Pipe --pod k.yaml --keep /k=Secret/k",
	}
	flags := cmd.Flags()
	flags.StringVar(&t.Kind, "kind", v1beta1.ApplyTask, `"Apply", "Delete", "Toggle", "Pipe", "KudoOperator" or "Dummy"`)
	flags.StringSliceVar(&t.Spec.Resources, "resource", nil, "templates that it applies or deletes")
	flags.StringVar(&t.Spec.Parameter, "parameter", "", "the parameter of a Toggle")
	flags.StringVar(&t.Spec.Pod, "pod", "", "the template of the Pod of a Pipe")
	flags.StringArrayVar(&keep, "keep", nil, "a file that a Pipe keeps, as FILE=Secret/KEY or FILE=ConfigMap/KEY; may be given several times")
	flags.StringVar(&t.Spec.Package, "package", "", "the package of a KudoOperator")
	flags.StringVar(&t.Spec.OperatorVersion, "operator-version", "", "the version of the package of a KudoOperator")
	flags.StringVar(&t.Spec.AppVersion, "app-version", "", "the version of the application of a KudoOperator")
	flags.StringVar(&t.Spec.InstanceName, "instance", "", "the name of the Instance of a KudoOperator")
	flags.StringVar(&t.Spec.ParameterFile, "parameter-file", "", "the template of the parameters of a KudoOperator")
	add := func(to *packages.Package, name string) (err error) {
		t.Name = name
		if t.Spec.Pipe, err = pipes(keep); err != nil {
			return err
		}
		if err := checkTask(&t); err != nil {
			return err
		}
		return authoring.AddTask(to, &t)
	}
	return (&addition{kind: "task", questions: taskQuestions, add: add}).prepare(cmd)
}

func pipes(keep []string) ([]v1beta1.PipeFile, error) {
	var files []v1beta1.PipeFile
	for _, text := range keep {
		file, to, ok := strings.Cut(text, "=")
		kind, key, isNamed := strings.Cut(to, "/")
		if !ok || !isNamed || (kind != "Secret" && kind != "ConfigMap") {
			return nil, fmt.Errorf("--keep: %q must be FILE=Secret/KEY or FILE=ConfigMap/KEY", text)
		}
		files = append(files, v1beta1.PipeFile{File: file, Kind: kind, Key: key})
	}
	return files, nil
}

var taskKinds = []string{v1beta1.ApplyTask, v1beta1.DeleteTask, v1beta1.ToggleTask, v1beta1.PipeTask, v1beta1.KudoOperatorTask, v1beta1.DummyTask}

func checkKind(kind string) error {
	if !slices.Contains(taskKinds, kind) {
		return fmt.Errorf("--kind: %q is not known; use Apply, Delete, Toggle, Pipe, KudoOperator or Dummy", kind)
	}
	return nil
}

func checkTask(t *v1beta1.Task) error {
	s, needs := &t.Spec, ""
	switch t.Kind {
	case v1beta1.ApplyTask, v1beta1.DeleteTask:
		needs = needed("--resource", len(s.Resources) > 0)
	case v1beta1.ToggleTask:
		needs = needed("--resource and --parameter", len(s.Resources) > 0 && s.Parameter != "")
	case v1beta1.PipeTask:
		needs = needed("--pod and --keep", s.Pod != "" && len(s.Pipe) > 0)
	case v1beta1.KudoOperatorTask:
		needs = needed("--package", s.Package != "")
	case v1beta1.DummyTask:
		s.Done = true
	default:
		return checkKind(t.Kind)
	}
	if needs != "" {
		return fmt.Errorf("--kind: a task of kind %s needs %s", t.Kind, needs)
	}
	return nil
}

func needed(flags string, given bool) string {
	if given {
		return ""
	}
	return flags
}

func newAddPlan() *cobra.Command {
	var (
		steps    []string
		strategy string
	)
	cmd := &cobra.Command{
		Use: "plan DIR NAME", Short: "Add a plan to a package",
		Long: "Add a plan. Steps are given in their order, as PHASE/STEP=TASK,TASK; those of the same phase\n" +
			"belong together.",
		Example: "  spillway package add plan ./shop backup --step prepare/lock=lock",
	}
	cmd.Flags().StringArrayVar(&steps, "step", nil, "a step, as PHASE/STEP=TASK,TASK; may be given several times")
	cmd.Flags().StringVar(&strategy, "strategy", string(v1beta1.Serial), `"serial" or "parallel": how phases and steps follow one another`)
	add := func(to *packages.Package, name string) error {
		plan, err := planOf(steps, v1beta1.Ordering(strategy))
		if err != nil {
			return err
		}
		return authoring.AddPlan(to, name, plan)
	}
	return (&addition{kind: "plan", questions: planQuestions, add: add}).prepare(cmd)
}

func checkStrategy(strategy string) error {
	if strategy != string(v1beta1.Serial) && strategy != string(v1beta1.Parallel) {
		return fmt.Errorf("--strategy: %q is not known; use serial or parallel", strategy)
	}
	return nil
}

func planOf(steps []string, strategy v1beta1.Ordering) (*v1beta1.Plan, error) {
	if err := checkStrategy(string(strategy)); err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, errors.New("--step: a plan needs a step, as PHASE/STEP=TASK,TASK")
	}
	plan := &v1beta1.Plan{Strategy: strategy}
	for _, text := range steps {
		at, tasks, ok := strings.Cut(text, "=")
		phase, step, isNamed := strings.Cut(at, "/")
		if !ok || !isNamed || phase == "" || step == "" || tasks == "" {
			return nil, fmt.Errorf("--step: %q must be PHASE/STEP=TASK,TASK", text)
		}
		i := slices.IndexFunc(plan.Phases, func(p v1beta1.Phase) bool { return p.Name == phase })
		if i < 0 {
			plan.Phases = append(plan.Phases, v1beta1.Phase{Name: phase, Strategy: strategy})
			i = len(plan.Phases) - 1
		}
		plan.Phases[i].Steps = append(plan.Phases[i].Steps, v1beta1.Step{Name: step, Tasks: strings.Split(tasks, ",")})
	}
	return plan, nil
}

func newAddMaintainer() *cobra.Command {
	var interactive bool
	cmd := &cobra.Command{
		Use: "maintainer DIR NAME EMAIL", Short: "Add a maintainer to a package",
		Example: "  spillway package add maintainer ./shop 'Ada Example' ada@example.com",
		Args: func(cmd *cobra.Command, args []string) error {
			if interactive && len(args) == 1 {
				return nil
			}
			return command.Exactly(3, "name the directory of a package, the maintainer and the address; or name the directory, and add --interactive")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := packages.Load(args[0])
			if err != nil {
				return err
			}
			m := v1beta1.Maintainer{}
			if len(args) == 1 {
				err = askMaintainer(cmd, &m)
			} else {
				m.Name, m.Email = args[1], args[2]
			}
			if err != nil {
				return err
			}
			if err := authoring.AddMaintainer(p, m); err != nil {
				return err
			}
			return writeAdded(cmd, "maintainer", m.Name, args[0])
		},
	}
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "ask for the name and the address")
	return cmd
}

func askMaintainer(cmd *cobra.Command, m *v1beta1.Maintainer) error {
	ask := newInterview(cmd)
	if err := ask.ask("Name of the maintainer", &m.Name, isGiven); err != nil {
		return err
	}
	return ask.ask("Email of the maintainer", &m.Email, isEmail)
}

type interview struct {
	in  *bufio.Reader
	out io.Writer
}

func newInterview(cmd *cobra.Command) interview {
	return interview{in: bufio.NewReader(cmd.InOrStdin()), out: cmd.ErrOrStderr()}
}

// ask asks until the answer is valid. An empty one keeps what is proposed.
func (i *interview) ask(text string, value *string, check func(string) error) error {
	for {
		_, _ = fmt.Fprintf(i.out, "%s [%s]: ", text, *value)
		line, err := i.in.ReadString('\n')
		if err != nil && line == "" {
			return errors.New("not all is answered, and nothing was written; leave out --interactive where no person can answer")
		}
		answer := cmp.Or(strings.TrimSpace(line), *value)
		if check != nil {
			if wrong := check(answer); wrong != nil {
				_, _ = fmt.Fprintln(i.out, wrong)
				continue
			}
		}
		*value = answer
		return nil
	}
}

// question asks for the value of a flag that is not given.
type question struct {
	flag, text string
	check      func(string) error
	// isMany is true of a flag that may be given several times: it is asked for until the
	// answer is empty.
	isMany bool
	// isFor are the kinds of tasks that have it; all if there is none.
	isFor []string
}

// askAll asks for the flags that are not given, and sets them.
func (i *interview) askAll(flags *pflag.FlagSet, questions []question) error {
	for _, q := range questions {
		kind, _ := flags.GetString("kind")
		if flags.Changed(q.flag) || len(q.isFor) > 0 && !slices.Contains(q.isFor, kind) {
			continue
		}
		if err := i.askFlag(flags, &q); err != nil {
			return err
		}
	}
	return nil
}

func (i *interview) askFlag(flags *pflag.FlagSet, q *question) error {
	proposed := strings.Trim(flags.Lookup(q.flag).DefValue, "[]")
	for {
		answer := proposed
		if err := i.ask(q.text, &answer, q.check); err != nil {
			return err
		}
		if answer == proposed {
			return nil
		}
		if err := flags.Set(q.flag, answer); err != nil {
			return fmt.Errorf("--%s: %w", q.flag, err)
		}
		if !q.isMany {
			return nil
		}
	}
}

func parameterQuestions(p *packages.Package) []question {
	return []question{
		{flag: "type", text: "Type (string, integer, number, boolean, array or map; empty: string)", check: checkType},
		{flag: "default", text: "Default, in YAML (empty: none)"},
		{flag: "required", text: "An Instance must set it, if it has no default (true or false)", check: isYesOrNo},
		{flag: "immutable", text: "It cannot be changed later (true or false)", check: isYesOrNo},
		{flag: "description", text: "What it does"},
		{flag: "display-name", text: "Its name for people"},
		{flag: "enum", text: "The values that it may have, with commas between them (empty: any)"},
		{flag: "trigger", text: "The plan that a change of it runs (empty: update, else deploy)", check: planOrNone(p)},
	}
}

func taskQuestions(p *packages.Package) []question {
	isKept := func(text string) error {
		_, err := pipes([]string{text})
		return err
	}
	apply := []string{v1beta1.ApplyTask, v1beta1.DeleteTask, v1beta1.ToggleTask}
	toggle, pipe, operator := []string{v1beta1.ToggleTask}, []string{v1beta1.PipeTask}, []string{v1beta1.KudoOperatorTask}
	return []question{
		{flag: "kind", text: "Kind (" + strings.Join(taskKinds, ", ") + ")", check: checkKind},
		{flag: "resource", text: "Templates, with commas between them", check: templatesOf(p), isFor: apply},
		{flag: "parameter", text: "The parameter by which it is applied or deleted", check: parameterOf(p), isFor: toggle},
		{flag: "pod", text: "Template of the Pod", check: templatesOf(p), isFor: pipe},
		{flag: "keep", text: "A file to keep, as FILE=Secret/KEY or FILE=ConfigMap/KEY (empty: no more)", check: emptyOr(isKept), isMany: true, isFor: pipe},
		{flag: "package", text: "Package", check: isGiven, isFor: operator},
		{flag: "operator-version", text: "Version of the package (empty: the latest)", isFor: operator},
		{flag: "app-version", text: "Version of the application (empty: the latest)", isFor: operator},
		{flag: "instance", text: "Name of the Instance (empty: that of this one and of the package)", isFor: operator},
		{flag: "parameter-file", text: "Template of its parameters (empty: none)", check: emptyOr(templatesOf(p)), isFor: operator},
	}
}

func planQuestions(p *packages.Package) []question {
	isStep := func(text string) error { return isStepOf(p, text) }
	return []question{
		{flag: "strategy", text: "How phases and steps follow one another (serial or parallel)", check: checkStrategy},
		{flag: "step", text: "A step, as PHASE/STEP=TASK,TASK (empty: no more)", check: emptyOr(isStep), isMany: true},
	}
}

func isGiven(text string) error {
	if text == "" {
		return errors.New("it must not be empty")
	}
	return nil
}

func emptyOr(check func(string) error) func(string) error {
	return func(text string) error {
		if text == "" {
			return nil
		}
		return check(text)
	}
}

func isYesOrNo(text string) error {
	if text != "true" && text != "false" {
		return fmt.Errorf("%q is not true or false", text)
	}
	return nil
}

func planOrNone(p *packages.Package) func(string) error {
	return emptyOr(func(name string) error {
		if _, ok := p.Operator.Plans[name]; !ok {
			return fmt.Errorf("plan %s not found; leave it empty, and add the plan first", name)
		}
		return nil
	})
}

func templatesOf(p *packages.Package) func(string) error {
	return func(text string) error {
		for name := range strings.SplitSeq(text, ",") {
			if _, ok := p.Templates[name]; !ok {
				return fmt.Errorf("templates/%s not found", name)
			}
		}
		return nil
	}
}

func parameterOf(p *packages.Package) func(string) error {
	return func(name string) error {
		if !slices.ContainsFunc(p.Parameters, func(o packages.Parameter) bool { return o.Name == name }) {
			return fmt.Errorf("parameter %q not found", name)
		}
		return nil
	}
}

// isStepOf is nil for a step whose tasks exist.
func isStepOf(p *packages.Package, text string) error {
	plan, err := planOf([]string{text}, v1beta1.Serial)
	if err != nil {
		return err
	}
	for _, name := range plan.Phases[0].Steps[0].Tasks {
		if p.Operator.Task(name) == nil {
			return fmt.Errorf("task %s not found", name)
		}
	}
	return nil
}

func newNew() *cobra.Command {
	var (
		dir, chart             string
		interactive, overwrite bool
	)
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Write a new package to begin with",
		Long: "Write a new package that can be installed as it is: a Deployment, two parameters, and the\n" +
			"plans deploy and update. Then change it, or add to it with: spillway package add. With\n" +
			"--interactive, what the package says of itself is asked for, and the name may be left out.\n" +
			"\n" +
			"With --from-chart, the package installs a Helm chart: its values are the parameters, and its\n" +
			"hooks are steps of the plans. The name is that of the chart, unless one is given.",
		Example: "  spillway package new shop\n" +
			"  spillway package new shop --interactive\n" +
			"  spillway package new --from-chart oci://registry.example.com/charts/shop:1.2.0\n" +
			"  spillway package add parameter ./shop COLOR --default blue",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkNew(cmd, args, interactive || chart != ""); err != nil {
				return err
			}
			if chart != "" {
				archive, err := (&origin.Origin{}).Chart(cmd.Context(), chart)
				if err != nil {
					return err
				}
				return writeFiles(cmd)(authoring.NewFromChart(dir, strings.Join(args, ""), archive, overwrite))
			}
			d := authoring.Default(strings.Join(args, ""))
			if interactive {
				ask := newInterview(cmd)
				if err := ask.describe(&d, &dir); err != nil {
					return err
				}
			}
			return writeFiles(cmd)(authoring.New(cmp.Or(dir, d.Name), &d, overwrite))
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the directory to create (default: the name)")
	cmd.Flags().StringVar(&chart, "from-chart", "", "the Helm chart to install: a directory, an archive (.tgz), a URL or oci://REGISTRY/NAME:VERSION")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace the files of a package that exists; other files of it stay")
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "ask for the directory, the versions, the address and the maintainer")
	cmd.MarkFlagsMutuallyExclusive("from-chart", "interactive")
	return cmd
}

func writeFiles(cmd *cobra.Command) func([]string, error) error {
	return func(written []string, err error) error {
		for _, file := range written {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s written\n", file)
		}
		return err
	}
}

func checkNew(cmd *cobra.Command, args []string, mayLeaveOut bool) error {
	if mayLeaveOut {
		return command.AtMost(1, "name the package, or leave it out")(cmd, args)
	}
	return command.Exactly(1, "name the package, as in: spillway package new shop; or add --interactive")(cmd, args)
}

// describe asks for what a package says of itself, and for its directory.
func (i *interview) describe(d *authoring.Description, dir *string) error {
	maintainer := v1beta1.Maintainer{}
	for _, q := range []struct {
		text  string
		value *string
		check func(string) error
	}{
		{"Name of the package", &d.Name, authoring.CheckName},
		{"Directory", dir, nil},
		{"Version of the package", &d.OperatorVersion, authoring.CheckVersion},
		{"Version of the application", &d.AppVersion, nil},
		{"Address of the project", &d.URL, isURL},
		{"Name of the maintainer", &maintainer.Name, nil},
		{"Email of the maintainer", &maintainer.Email, isEmail},
	} {
		if q.value == dir {
			*dir = cmp.Or(*dir, d.Name)
		}
		if q.value == &maintainer.Email && maintainer.Name == "" {
			continue
		}
		if err := i.ask(q.text, q.value, q.check); err != nil {
			return err
		}
	}
	if maintainer.Name != "" {
		d.Maintainers = []v1beta1.Maintainer{maintainer}
	}
	return nil
}

func isURL(text string) error {
	if u, err := url.Parse(text); text != "" && (err != nil || u.Scheme == "" || u.Host == "") {
		return fmt.Errorf("%q is no URL; write it as https://example.com/shop, or leave it out", text)
	}
	return nil
}

func isEmail(text string) error {
	if _, err := mail.ParseAddress(text); text != "" && err != nil {
		return fmt.Errorf("%q is no email address; write it as ada@example.com, or leave it out", text)
	}
	return nil
}

func newModernize() *cobra.Command {
	var (
		version command.KubeVersion
		dry     bool
	)
	cmd := &cobra.Command{
		Use: "modernize DIR", Short: "Rewrite templates for the API versions that Kubernetes serves",
		Long: "Rewrite the templates of a package for the API versions that Kubernetes still serves, with\n" +
			"the fields that differ. Only the lines that must change are changed. What cannot be changed\n" +
			"with certainty stays as it is, and is named; the exit code is then 1.",
		Example: "  spillway package modernize ./kafka --dry-run\n" +
			"  spillway package modernize ./kafka && spillway package verify ./kafka",
		Args: command.Exactly(1, "name the directory of a package"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := packages.Load(args[0])
			if err != nil {
				return err
			}
			return modernize(cmd, p, version.Minor, dry)
		},
	}
	version.AddFlag(cmd.Flags())
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would change, and write nothing")
	return cmd
}

// errByHand is that not all was changed.
var errByHand = errors.New("some templates must be changed by hand; see above")

func modernize(cmd *cobra.Command, p *packages.Package, minor int, dry bool) error {
	changed, byHand := map[string][]byte{}, false
	for _, name := range slices.Sorted(maps.Keys(p.Templates)) {
		text, changes := modern.Template(p.Templates[name], minor)
		if text != p.Templates[name] {
			changed["templates/"+name] = []byte(text)
		}
		for _, c := range changes {
			did := "changed"
			switch {
			case c.Manual:
				did, byHand = "by hand", true
			case dry:
				did = "would be changed"
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "templates/%s:%d: %s: %s: %s\n", name, c.Line, did, c.Object, c.What)
		}
	}
	if !dry && len(changed) > 0 {
		if err := p.Rewrite(changed); err != nil {
			return err
		}
	}
	switch {
	case byHand:
		return errByHand
	case len(changed) == 0:
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%d templates checked, nothing to change\n", len(p.Templates))
	}
	return nil
}
