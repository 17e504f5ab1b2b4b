package packaging

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/authoring"
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

// addition is a command that adds something with a name to a package.
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

// types are those of parameters.
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

// taskKinds are those of tasks.
var taskKinds = []string{v1beta1.ApplyTask, v1beta1.DeleteTask, v1beta1.ToggleTask, v1beta1.PipeTask, v1beta1.KudoOperatorTask, v1beta1.DummyTask}

func checkKind(kind string) error {
	if !slices.Contains(taskKinds, kind) {
		return fmt.Errorf("--kind: %q is not known; use Apply, Delete, Toggle, Pipe, KudoOperator or Dummy", kind)
	}
	return nil
}

// checkTask refuses a task that lacks what its kind needs.
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
