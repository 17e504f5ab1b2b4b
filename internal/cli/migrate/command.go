package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/cli/ops"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/source"
)

const outputScript = "script"

type migration struct {
	env     command.Environment
	cluster command.Cluster
	client  client.Client
	in      io.Reader
	out     io.Writer

	from     []former
	fromName string
	files    []string
	// documents are the manifests of files.
	documents []source.Document
	accept    []string
	output    string
	// namespace is that of the manager, image its image, and args are those that it gets besides.
	namespace, image string
	webhooks         bool
	args             []string
	// settle is how long is watched, and timeout how long each wait may take.
	settle, timeout time.Duration
}

// New returns the command migrate.
func New(env command.Environment) *cobra.Command {
	m := &migration{env: env}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Change over from wave, Reloader, rollout-operator, KUDO or fleeet, and back",
		Long: "Find a former controller in the cluster or among manifests, and say with which arguments\n" +
			"it runs, what it acts on, what must be decided first, and the steps of the way. In a\n" +
			"cluster, the code of the manager runs on the present state, to say what would roll.\n" +
			"Nothing is written.\n" +
			"\n" +
			"spillway migrate do takes the steps, and spillway migrate undo goes back.\n" +
			"\n" +
			"The exit code is 1 if something must be decided first.",
		Example: "  spillway migrate\n" +
			"  spillway migrate --from reloader -f deploy/\n" +
			"  spillway migrate --from wave -o script > change-over.sh",
		Args: command.None("say by --from what to change over from"),
		RunE: func(cmd *cobra.Command, _ []string) error { return m.runLook(cmd) },
	}
	m.addFlags(cmd)
	cmd.Flags().StringArrayVarP(&m.files, "filename", "f", nil, "look at a file, a directory, or - for standard input, and at no cluster; may be given several times")
	command.OutputFlag(cmd, &m.output, outputScript)
	cmd.AddCommand(newDo(env), newUndo(env), newRewrite())
	return cmd
}

func (m *migration) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	m.webhooks = true
	m.cluster.AddFlags(flags)
	flags.StringVar(&m.fromName, "from", auto, "what to change over from: wave, reloader, rollout-operator, kudo or fleeet; auto is all that is found")
	flags.StringSliceVar(&m.accept, "accept", nil, "codes of what is decided, as the command prints them")
	flags.StringVarP(&m.namespace, "namespace", "n", manifests.DefaultNamespace, "namespace of the manager")
	flags.StringVar(&m.image, "image", "", "image of the manager (default: that of the release)")
	flags.BoolVar(&m.webhooks, "webhooks", true, "serve the webhooks of the rings")
}

func newDo(env command.Environment) *cobra.Command {
	m := &migration{env: env}
	cmd := &cobra.Command{
		Use:   "do",
		Short: "Stop the former controller, install the manager, and watch that nothing rolls",
		Long: "Scale the former controller to zero, wait until its Pods are gone, remove the webhooks that\n" +
			"call it, install the manager with its arguments, and watch for --settle. Go back\n" +
			"automatically if the manager does not begin to work, if anything rolls that no user has\n" +
			"asked for, or if another client starts the former controller again.\n" +
			"\n" +
			"What the way back needs is recorded in ConfigMap " + recordName + " beside the manager.\n" +
			"Arguments after -- are passed to the manager.",
		Example: "  spillway migrate do --from wave --settle 10m\n" +
			"  spillway migrate do --accept=rolls -- --max-rolling=5",
		Args: command.AfterDash("give the flags of the manager after --"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.args = args
			return m.runDo(cmd)
		},
	}
	m.addFlags(cmd)
	cmd.Flags().DurationVar(&m.settle, "settle", time.Minute, "how long to watch before the change-over counts as made")
	cmd.Flags().DurationVar(&m.timeout, "timeout", 5*time.Minute, "how long each wait may take") //nolint:mnd // for an image to be pulled
	return cmd
}

func newUndo(env command.Environment) *cobra.Command {
	m := &migration{env: env}
	cmd := &cobra.Command{
		Use:   "undo",
		Short: "Uninstall the manager, and start the former controller again",
		Long: "Uninstall the manager, create the webhooks of the former controller again, and scale it to\n" +
			"what it was, as ConfigMap " + recordName + " says. What would be lost is named first, and\n" +
			"must be accepted. The command can be repeated after an error.",
		Example: "  spillway migrate undo",
		Args:    command.None("nothing needs to be named"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return m.runUndo(cmd) },
	}
	m.addFlags(cmd)
	cmd.Flags().DurationVar(&m.timeout, "timeout", 5*time.Minute, "how long each wait may take") //nolint:mnd // for Pods to be gone
	return cmd
}

func (m *migration) begin(cmd *cobra.Command) (err error) {
	m.in, m.out = cmd.InOrStdin(), cmd.OutOrStdout()
	if m.from, err = named(m.fromName); err != nil {
		return err
	}
	if err := command.CheckNamespaces("namespace", m.namespace); err != nil {
		return err
	}
	if len(m.files) == 0 {
		m.client, err = m.cluster.Client()
	}
	return err
}

func (m *migration) look(ctx context.Context) (*answer, []*unstructured.Unstructured, error) {
	objects, err := m.objects(ctx)
	if err != nil {
		return nil, nil, err
	}
	a := &answer{Found: m.find(objects), computed: m.client != nil}
	if len(a.Found) == 0 {
		return nil, nil, fmt.Errorf("no %s was found: no Deployment, StatefulSet or DaemonSet has an image of %s", m.fromName, m.sought())
	}
	a.Undecided, a.Steps = m.undecided(a.Found, objects), m.steps(a.Found)
	if m.client == nil {
		return a, objects, nil
	}
	if a.looked, err = m.stateOf(ctx, a.Found); err == nil {
		a.Rolls, err = m.rolls(ctx, a.Found)
	}
	if err != nil {
		return nil, nil, err
	}
	if len(a.Rolls) > 0 {
		a.Undecided = append(a.Undecided, point{"rolls", fmt.Sprintf("%d steps", len(a.Rolls)), "would be taken immediately, by either controller", "wait until what is under way is complete, or accept it"})
	}
	return a, objects, nil
}

func (m *migration) sought() string {
	names := make([]string, 0, len(m.from))
	for i := range m.from {
		names = append(names, m.from[i].name)
	}
	return strings.Join(names, ", ")
}

func (m *migration) objects(ctx context.Context) (all []*unstructured.Unstructured, err error) {
	if len(m.files) == 0 {
		return objectsOf(ctx, m.client, kinds())
	}
	if m.documents, err = source.ReadTree(m.in, source.Options{Skip: func(source.Skipped) {}}, m.files...); err != nil {
		return nil, err
	}
	source.InNamespace(m.documents, "default")
	for i := range m.documents {
		all = append(all, m.documents[i].Object)
	}
	return all, nil
}

// open are the points that no user has decided.
func (m *migration) open(points []point) []point {
	return slices.DeleteFunc(slices.Clone(points), func(p point) bool { return slices.Contains(m.accept, p.Code) })
}

// errUndecided ends the command where something must be decided, which was printed.
func errUndecided(points []point) error {
	if len(points) == 0 {
		return nil
	}
	return command.ExitError{Err: fmt.Errorf("%d points must be decided first", len(points)), Code: 1, Said: true}
}

func (m *migration) runLook(cmd *cobra.Command) error {
	if err := m.begin(cmd); err != nil {
		return err
	}
	a, _, err := m.look(cmd.Context())
	if err != nil {
		return err
	}
	a.Undecided = m.open(a.Undecided)
	if m.output == outputScript {
		a.script(display.Raw(m.out))
	} else if err := command.Show(m.out, m.output, a, func(w io.Writer) { a.write(w, display.StyleOf(w, m.env.Lookup)) }); err != nil {
		return err
	}
	return errUndecided(a.Undecided)
}

func (m *migration) runDo(cmd *cobra.Command) error {
	if err := m.begin(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	a, objects, err := m.look(ctx)
	if err != nil {
		return err
	}
	absent, err := m.absence(ctx, a.Found)
	if err == nil && absent == "" {
		err = errors.New("a manager is at work already: to let it do more, follow the steps of spillway migrate --from by hand, with all rings in spillway install --rings")
	}
	if err != nil {
		return err
	}
	if open := m.open(a.Undecided); len(open) > 0 {
		shown := &answer{Found: a.Found, Rolls: a.Rolls, Undecided: open}
		shown.write(m.out, display.StyleOf(m.out, m.env.Lookup))
		return errUndecided(open)
	}
	r := &record{Stopped: a.Found, Webhooks: webhooksToKeep(a.Found, objects)}
	if err := m.remember(ctx, r); err != nil {
		return err
	}
	err = m.handOver(ctx, a, r)
	if err == nil {
		m.sayf("changed over; spillway migrate undo goes back")
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: spillway migrate undo goes back: %w", err)
	}
	m.sayf("going back: %s", err)
	if failed := m.back(ctx, r); failed != nil {
		return fmt.Errorf("%w; spillway migrate undo goes on from here: %w", err, failed)
	}
	return fmt.Errorf("nothing was changed over: %w", err)
}

func (m *migration) handOver(ctx context.Context, a *answer, r *record) error {
	stopping, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if err := m.stop(stopping, a.Found); err != nil {
		return err
	}
	if err := m.removeWebhooks(ctx, r.Webhooks); err != nil {
		return err
	}
	if err := m.forgetStates(ctx, a.Found); err != nil {
		return err
	}
	before, err := m.stateOf(ctx, a.Found)
	if err != nil {
		return err
	}
	if err := m.install(ctx, a.Found); err != nil {
		return err
	}
	return m.watch(ctx, a, before)
}

func (m *migration) runUndo(cmd *cobra.Command) error {
	if err := m.begin(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	r, err := m.recall(ctx)
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("there is no ConfigMap %s in namespace %s: no change-over was made from here; uninstall with spillway uninstall, and start the former controller by hand", recordName, m.namespace)
	}
	lost, err := m.lost(ctx)
	if err != nil {
		return err
	}
	if open := m.open(lost); len(open) > 0 {
		(&answer{Undecided: open}).write(m.out, display.StyleOf(m.out, m.env.Lookup))
		return errUndecided(open)
	}
	return m.back(ctx, r)
}

func (m *migration) sayf(format string, args ...any) { _, _ = fmt.Fprintf(m.out, format+"\n", args...) }

func (m *migration) managerFlags() *pflag.FlagSet { return ops.NewManager(m.env).Flags() }

// ringFlags are those by which the rings decide, as arguments of the manager set them.
func (m *migration) ringFlags(args []string) (*command.RingFlags, error) {
	f, flags := &command.RingFlags{}, pflag.NewFlagSet("manager", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	f.Add(flags)
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("arguments of the manager: %w", err)
	}
	return f, nil
}

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

// gathered is what all former controllers have of something, each once.
func gathered(all []found, of func(*found) []string) (values []string) {
	for i := range all {
		values = append(values, of(&all[i])...)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// rings are those that do the work of all former controllers.
func rings(all []found) []string {
	return gathered(all, func(f *found) []string { return f.of.rings })
}

// switches are the flags of the manager, which spillway install has, too, that the former controllers need.
func switches(all []found) []string {
	return gathered(all, func(f *found) []string { return f.of.args })
}

// managerArgs are the arguments of the manager that carry over what the former controllers run with.
func managerArgs(all []found) []string {
	return gathered(all, func(f *found) (args []string) {
		for _, flag := range f.Flags {
			if flag.Manager != "" {
				args = append(args, flag.Manager)
			}
		}
		return args
	})
}

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

func (a *answer) script(w io.Writer) {
	_, _ = fmt.Fprintln(w, "#!/usr/bin/env bash\nset -euo pipefail")
	for _, step := range a.Steps {
		_, _ = fmt.Fprintf(w, "\n# %s\n%s\n", step.Does, strings.Join(step.Commands, "\n"))
	}
}
