package packaging

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/packages"
)

// interview asks a person, a line for each answer.
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
	apply := []string{v1beta1.ApplyTask, v1beta1.DeleteTask, v1beta1.ToggleTask}
	toggle, pipe, operator := []string{v1beta1.ToggleTask}, []string{v1beta1.PipeTask}, []string{v1beta1.KudoOperatorTask}
	return []question{
		{flag: "kind", text: "Kind (" + strings.Join(taskKinds, ", ") + ")", check: checkKind},
		{flag: "resource", text: "Templates, with commas between them", check: templatesOf(p), isFor: apply},
		{flag: "parameter", text: "The parameter by which it is applied or deleted", check: parameterOf(p), isFor: toggle},
		{flag: "pod", text: "Template of the Pod", check: templatesOf(p), isFor: pipe},
		{flag: "keep", text: "A file to keep, as FILE=Secret/KEY or FILE=ConfigMap/KEY (empty: no more)", check: isKept, isMany: true, isFor: pipe},
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

func isKept(text string) error {
	if text == "" {
		return nil
	}
	_, err := pipes([]string{text})
	return err
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
