package migrate

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/shell"
)

// answer is what the command says before anything is done.
type answer struct {
	Found []found `json:"found"`
	// Rolls are what the manager would roll immediately, by its own code on the present state: nothing is rolled
	// because of the change-over itself.
	Rolls []string `json:"rolls,omitempty"`
	// Undecided must be decided before anything is done.
	Undecided []point `json:"undecided,omitempty"`
	Steps     []step  `json:"steps,omitempty"`
	// computed is true where there was a cluster whose state Rolls follows from.
	computed bool
	// looked is what users asked for before that state was read.
	looked state
}

// step is a part of the way, with its commands.
type step struct {
	Does     string   `json:"does"`
	Commands []string `json:"commands"`
}

// rings are those that do the work of all former controllers.
func rings(all []found) (names []string) {
	for i := range all {
		names = append(names, all[i].of.rings...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// managerArgs are the arguments of the manager that carry over what the former controllers run with.
func managerArgs(all []found) (args []string) {
	for i := range all {
		for _, flag := range all[i].Flags {
			if flag.Manager != "" {
				args = append(args, flag.Manager)
			}
		}
	}
	slices.Sort(args)
	return slices.Compact(args)
}

// switches are the flags of the manager, which spillway install has, too, that the former controllers need.
func switches(all []found) (args []string) {
	for i := range all {
		args = append(args, all[i].of.args...)
	}
	slices.Sort(args)
	return slices.Compact(args)
}

// installArgs are the arguments of spillway install.
func (m *migration) installArgs(all []found) []string {
	args := append([]string{"--rings=" + strings.Join(rings(all), ",")}, switches(all)...)
	if m.namespace != manifests.DefaultNamespace {
		args = append(args, "--namespace="+m.namespace)
	}
	if m.image != "" {
		args = append(args, "--image="+m.image)
	}
	if namespaces := watched(all); len(namespaces) > 0 {
		args = append(args, "--watch-namespaces="+strings.Join(namespaces, ","))
	}
	if !m.webhooks {
		args = append(args, "--webhooks=false")
	}
	if more := append(managerArgs(all), m.args...); len(more) > 0 {
		args = append(append(args, "--"), more...)
	}
	return args
}

// steps are the way by hand, which is the one that spillway migrate do takes.
func (m *migration) steps(all []found) (steps []step) {
	if len(all) == 0 {
		return nil
	}
	stop, hooks := step{Does: "stop what acts on the objects now, and wait until it is gone"}, step{Does: "remove the webhooks that nothing answers any more, and keep them for the way back"}
	for i := range all {
		f := &all[i]
		stop.Commands = append(stop.Commands,
			fmt.Sprintf("kubectl scale %s -n %s --replicas=0", f.ref(), f.Namespace),
			fmt.Sprintf("kubectl wait %s -n %s --for=jsonpath='{.status.replicas}'=0 --timeout=5m", f.ref(), f.Namespace))
		for _, hook := range f.Webhooks {
			kind, name, _ := strings.Cut(strings.ToLower(hook), "/")
			hooks.Commands = append(hooks.Commands, shell.Join("kubectl", "get", kind, name, "-o", "yaml")+" >"+shell.Quote(name+".yaml"), shell.Join("kubectl", "delete", kind, name))
		}
	}
	steps = append(steps, stop)
	if len(hooks.Commands) > 0 {
		steps = append(steps, hooks)
	}
	return append(steps,
		step{"install the manager", []string{shell.Join(append([]string{"spillway", "install"}, m.installArgs(all)...)...)}},
		step{"see that everything is adopted, and that nothing rolls", []string{"spillway check", "spillway status -A"}})
}

// write writes the answer for people.
func (a *answer) write(w io.Writer, s display.Style) {
	line := func(indent int, format string, args ...any) {
		_, _ = fmt.Fprintln(w, s.Fold(strings.Repeat(" ", indent)+fmt.Sprintf(format, args...), indent+2)) //nolint:mnd // what follows is indented
	}
	for i := range a.Found {
		a.Found[i].write(line)
	}
	if a.computed && len(a.Rolls) == 0 {
		line(0, "Nothing rolls because of the change-over: computed by the manager's own code on the present state.")
	}
	if len(a.Rolls) > 0 {
		line(0, "The manager would go on with what is under way or was missed:")
	}
	for _, roll := range a.Rolls {
		line(2, "%s", roll) //nolint:mnd // below the line before
	}
	if len(a.Undecided) > 0 {
		line(0, "Decide first; --accept=CODE says that it is:")
	}
	for _, p := range a.Undecided {
		line(2, "%s: %s %s; %s", p.Code, p.Object, p.What, p.Action) //nolint:mnd // below the line before
	}
	for i, step := range a.Steps {
		line(0, "%d. %s:", i+1, step.Does)
		for _, command := range step.Commands {
			_, _ = fmt.Fprintln(w, "   "+command) // it is copied
		}
	}
	if len(a.Steps) > 0 && a.computed {
		line(0, "spillway migrate do takes these steps, watches, and goes back automatically; spillway migrate undo goes back later.")
	}
}

func (f *found) write(line func(indent int, format string, args ...any)) {
	version := f.Version
	if version == "" {
		version = "of an unknown version"
	}
	where := "all namespaces"
	if len(f.Watches) > 0 {
		where = "namespaces " + strings.Join(f.Watches, ", ")
	}
	line(0, "%s %s: %s in namespace %s, %d replicas, in %s", f.Controller, version, f.ref(), f.Namespace, f.Replicas, where)
	var uses []string
	for _, use := range f.Uses {
		uses = append(uses, fmt.Sprintf("%d %s", use.Count, use.Kind))
	}
	if len(uses) > 0 {
		line(2, "acts on %s", strings.Join(uses, ", ")) //nolint:mnd // below the line before
	}
	for _, flag := range f.Flags {
		if flag.Manager != "" {
			line(2, "%s: carried over", flag.Manager) //nolint:mnd // below the line before
		} else {
			line(2, "%s: %s", flag.Name, flag.Instead) //nolint:mnd // below the line before
		}
	}
	line(2, "what is the same and what differs: https://github.com/spillway-dev/spillway/blob/main/docs/%s", f.Differs) //nolint:mnd // below the line before
}

// script writes the steps for a shell.
func (a *answer) script(w io.Writer) {
	_, _ = fmt.Fprintln(w, "#!/usr/bin/env bash\nset -euo pipefail")
	for _, step := range a.Steps {
		_, _ = fmt.Fprintf(w, "\n# %s\n%s\n", step.Does, strings.Join(step.Commands, "\n"))
	}
}
