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

func newAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add", Short: "Add a parameter, a task, a plan or a maintainer to a package",
		Long: "Add a parameter, a task, a plan or a maintainer to the files of a package. What they have\n" +
			"already stays as it is, with its comments.",
	}
	cmd.AddCommand(newAddParameter(), newAddTask(), newAddPlan(), newAddMaintainer())
	return cmd
}

// added changes a package, and says so.
func added(cmd *cobra.Command, dir, what string, add func(*packages.Package) error) error {
	p, err := packages.Load(dir)
	if err != nil {
		return err
	}
	if err := add(p); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s added to %s\n", what, dir)
	return nil
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
		Args: command.Exactly(2, "name the directory of a package and the parameter"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p.Name = args[1]
			if err := checkType(p.Type); err != nil {
				return err
			}
			if cmd.Flags().Changed("default") {
				if p.Default, err = native(value, p.Type); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("required") {
				p.Required = &required
			}
			if cmd.Flags().Changed("immutable") {
				p.Immutable = &immutable
			}
			return added(cmd, args[0], "parameter "+p.Name, func(to *packages.Package) error { return authoring.AddParameter(to, &p) })
		},
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
	return cmd
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
		Args: command.Exactly(2, "name the directory of a package and the task"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t.Name = args[1]
			if t.Spec.Pipe, err = pipes(keep); err != nil {
				return err
			}
			if err := checkTask(&t); err != nil {
				return err
			}
			return added(cmd, args[0], "task "+t.Name, func(to *packages.Package) error { return authoring.AddTask(to, &t) })
		},
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
	return cmd
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
		return fmt.Errorf("--kind: %q is not known; use Apply, Delete, Toggle, Pipe, KudoOperator or Dummy", t.Kind)
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
		Args:    command.Exactly(2, "name the directory of a package and the plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := planOf(steps, v1beta1.Ordering(strategy))
			if err != nil {
				return err
			}
			return added(cmd, args[0], "plan "+args[1], func(to *packages.Package) error { return authoring.AddPlan(to, args[1], plan) })
		},
	}
	cmd.Flags().StringArrayVar(&steps, "step", nil, "a step, as PHASE/STEP=TASK,TASK; may be given several times")
	cmd.Flags().StringVar(&strategy, "strategy", string(v1beta1.Serial), `"serial" or "parallel": how phases and steps follow one another`)
	return cmd
}

func planOf(steps []string, strategy v1beta1.Ordering) (*v1beta1.Plan, error) {
	if strategy != v1beta1.Serial && strategy != v1beta1.Parallel {
		return nil, fmt.Errorf("--strategy: %q is not known; use serial or parallel", strategy)
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
	return &cobra.Command{
		Use: "maintainer DIR NAME EMAIL", Short: "Add a maintainer to a package",
		Example: "  spillway package add maintainer ./shop 'Ada Example' ada@example.com",
		Args:    command.Exactly(3, "name the directory of a package, the maintainer and the address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := v1beta1.Maintainer{Name: args[1], Email: args[2]}
			return added(cmd, args[0], "maintainer "+m.Name, func(to *packages.Package) error { return authoring.AddMaintainer(to, m) })
		},
	}
}
