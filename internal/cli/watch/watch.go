package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/cli/show"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/rollout"
)

// exitTimeout is the exit code of a watch that ended before the rollout did.
const exitTimeout = 2

var errInterrupted = errors.New("interrupted; the rollout continues without this command")

// looksApart is how much time is between two reads at least, and how often times are
// drawn again.
const looksApart = time.Second

// justNow is how old an Event may be that is faster than the watch of what it is about.
const justNow = 10 * time.Second

type watching struct {
	*command.Query

	// execute runs a command that a person has chosen.
	execute    func(context.Context, command.Environment) int
	all, lines bool
	eta        bool
	timeout    time.Duration
	selection  command.UnitSelection
	// ref is the object, nil if everything is watched.
	ref       *describe.Ref
	namespace string

	live   client.WithWatch
	mirror *snapshot.Watched
	look   describe.Options
	began  time.Time
	// hasSeen is true once there was something to see, members what it consisted of; told is true once it was said
	// whether a manager is at work, or if a screen hides that.
	hasSeen bool
	told    bool
	members *history.Members
}

// firstOnlooker is also shown what is known before everything was read for the first time.
type firstOnlooker interface {
	glimpses(part describe.Partial)
}

// lookError is that the API server did not show how things stand.
type lookError struct{ error }

// Unwrap gives the error that it is.
func (e lookError) Unwrap() error { return e.error }

// onlooker shows a watch to a person, one thing at a time.
type onlooker interface {
	// sees is given how things stand, whenever that may have changed.
	sees(units []describe.Unit, now time.Time)
	// misses receives why nothing can be read at present, as often as it fails.
	misses(err error, now time.Time)
	// hears is given each Event once.
	hears(n *history.Event)
}

func (w *watching) run(cmd *cobra.Command, args []string) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if err := errors.Join(command.CheckShownRings(cmd.Flags(), w.look.Rings), w.check(args)); err != nil {
		return err
	}
	if err := w.prepare(ctx, args); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if w.isInteractive(out) {
		w.told = true
		return w.interactively(ctx, out)
	}
	end, err := w.follow(ctx, w.writer(out))
	return w.verdict(ctx, end, err)
}

func (w *watching) writer(out io.Writer) onlooker {
	if w.Output != "" {
		return &valueWriter{out: out, output: w.Output, one: w.ref != nil, said: map[describe.Ref]string{}}
	}
	return &lineWriter{out: out, style: display.StyleOf(out, w.Env.Lookup), began: w.began}
}

func (w *watching) prepare(ctx context.Context, args []string) (err error) {
	if w.namespace, err = w.Cluster.ResolveNamespace(); err != nil {
		return err
	}
	if len(args) > 0 {
		ref, err := command.ReleaseNamed(w.namespace, args[0])
		if err != nil {
			return err
		}
		w.ref, w.look.Object = &ref, &ref
	}
	if w.live, err = w.Cluster.Client(); err != nil {
		return err
	}
	namespace := w.namespace
	if w.all || w.ref != nil && w.ref.Namespace == "" && w.Cluster.Namespace == "" {
		w.namespace = ""
	}
	if w.ref != nil {
		w.look.Rings = []string{describe.RingOf(w.ref.Kind)}
	}
	w.look.Namespace, w.look.Memory, w.began = w.namespace, describe.NewMemory(), w.Env.Now()
	// What takes longest begins first.
	if w.mirror, err = w.Mirror(ctx, w.live, w.namespace, len(w.look.Rings) == 0 || slices.Contains(w.look.Rings, describe.Config)); err != nil {
		return err
	}
	if err := w.AdoptInstalled(ctx, w.live, namespace); err != nil {
		return err
	}
	w.told = w.TellNoManager(ctx, false) != ""
	if w.look.Config, err = w.Rings.Options(w.Env.Now); err != nil || w.namespace == "" {
		return err
	}
	return command.NamespaceMissing(ctx, w.live, w.namespace)
}

func (w *watching) check(args []string) error {
	switch {
	case w.all && w.Cluster.Namespace != "":
		return command.ErrBothNamespaces
	case w.all && len(args) > 0:
		return errors.New("--all-namespaces: an object is in one namespace; leave it out")
	case w.timeout < 0:
		return fmt.Errorf("--timeout: %s is negative; use 0 for no limit", w.timeout)
	case w.timeout > 0 && len(args) == 0:
		return errors.New("--timeout: only the rollout of an object ends; name one as KIND/NAME")
	case len(args) > 0 && (w.selection.Narrows() || w.selection.Sorts() || len(w.look.Rings) > 0):
		return errors.New("--selector, --field-selector, --sort-by and --rings: one object is watched; leave them out, or the object")
	default:
		return w.selection.Check()
	}
}

func (w *watching) isInteractive(out io.Writer) bool {
	return display.Redraws(out) && !w.lines && w.Output == "" && term.IsTerminal(int(os.Stdin.Fd()))
}

// ended is how a rollout ended, nil while it goes on.
type ended struct{ unit describe.Unit }

// follow looks on until the rollout has ended, or the context.
func (w *watching) follow(ctx context.Context, on onlooker) (*ended, error) {
	ctx, cancel := w.patience(ctx)
	defer cancel()
	notes := make(chan history.Event)
	go w.listenTo(ctx, notes)
	seen := sync.OnceFunc(command.SpendMemory()) // for the first screen
	if first, ok := on.(firstOnlooker); ok && w.ref == nil && !w.selection.Narrows() && !w.selection.Sorts() {
		w.look.Partial = first.glimpses
	}
	for {
		end, err := w.see(ctx, on)
		w.look.Partial = nil
		seen()
		switch {
		case end != nil:
			return end, nil
		case ctx.Err() != nil: // whatever a cache says that was not filled in time
			return nil, ctx.Err() //nolint:wrapcheck // verdict says what it means
		case w.tolerates(err):
			on.misses(err, w.Env.Now())
			w.mirror.Touch()
		case err != nil:
			return nil, err
		}
		if err := w.listen(ctx, on, notes); err != nil {
			return nil, err
		}
	}
}

// listenTo hands on Events until the watch ends. A user who may not read them sees the
// rest.
func (w *watching) listenTo(ctx context.Context, notes chan<- history.Event) {
	for ctx.Err() == nil {
		err := history.Follow(ctx, w.live, w.namespace, func(n *history.Event) error {
			w.addChanged(ctx, n)
			select {
			case notes <- *n:
			case <-ctx.Done():
			}
			return nil
		}, func(error) {}) // the reads report it
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return
		}
		select {
		case <-ctx.Done():
		case <-clock.RealClock{}.After(looksApart):
		}
	}
}

// addChanged adds what had changed to the Event of a roll. An Event may be faster than the watch of
// the workload that it is about, which then is read.
func (w *watching) addChanged(ctx context.Context, n *history.Event) {
	n.AddChanged(ctx, w.mirror)
	if isNew := w.Env.Now().Sub(n.At) < justNow; isNew && n.IsRoll() && len(n.Changed) == 0 {
		n.AddChanged(ctx, w.live)
	}
}

func (w *watching) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.timeout > 0 {
		return context.WithTimeout(ctx, w.timeout)
	}
	return context.WithCancel(ctx)
}

// tolerates is true of an error that another read may fix, once something was shown.
func (w *watching) tolerates(err error) bool {
	_, isLook := errors.AsType[lookError](err)
	return isLook && w.hasSeen && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err)
}

// see looks once, and shows it.
func (w *watching) see(ctx context.Context, on onlooker) (*ended, error) {
	units, err := w.units(ctx, w.mirror)
	if err != nil {
		return nil, err
	}
	if err := w.foresee(ctx, units); err != nil {
		return nil, err
	}
	if !w.told {
		w.TellNoManager(ctx, !describe.AreComplete(units))
	}
	w.hasSeen, w.told = true, true
	on.sees(units, w.Env.Now())
	var end *ended
	if w.ref != nil && isOver(&units[0]) {
		end = w.confirmed(ctx)
	}
	if w.ref == nil || end != nil {
		return end, nil
	}
	members, err := history.MembersOf(ctx, w.mirror, *w.ref)
	if err != nil {
		return nil, lookError{err}
	}
	members.Add(units[0].Units)
	w.members = members
	return end, nil
}

// confirmed is how the rollout ended, as the API server itself says: watches of several
// kinds are not equally fast. If it does not answer it is asked again later.
func (w *watching) confirmed(ctx context.Context) *ended {
	units, err := w.units(ctx, w.live)
	if err != nil {
		w.mirror.Touch()
		return nil
	}
	if !isOver(&units[0]) {
		return nil
	}
	return &ended{units[0]}
}

// units are those that were asked for, never none if it was an object.
func (w *watching) units(ctx context.Context, c client.Client) ([]describe.Unit, error) {
	snapshot, err := describe.Describe(ctx, c, w.look)
	if err != nil {
		return nil, lookError{err}
	}
	if w.ref == nil {
		units, err := w.selection.Apply(ctx, c, w.namespace, snapshot.Units)
		if err != nil {
			return nil, lookError{err}
		}
		return units, nil
	}
	if u := describe.Find(snapshot.Units, *w.ref); u != nil {
		return []describe.Unit{*u}, nil
	}
	if len(snapshot.Unseen) > 0 {
		return nil, errors.New(snapshot.Unseen[0].Why)
	}
	if err := command.Missing(ctx, w.live, *w.ref); err != nil {
		return nil, err
	}
	if w.ref.Namespace == "" {
		return nil, fmt.Errorf("%s does not count for this manager; spillway explain %s shows its state", w.ref, w.ref)
	}
	return nil, fmt.Errorf("%s not found in namespace %s, or no ring rolls it; spillway explain %s -n %s shows which",
		w.ref, w.ref.Namespace, w.ref, w.ref.Namespace)
}

// New returns the command watch. run runs the commands that a person chooses by a key.
func New(env command.Environment, run func(context.Context, command.Environment) int) *cobra.Command {
	w := &watching{execute: run}
	cmd := &cobra.Command{
		Use:   "watch [KIND/NAME]",
		Short: "Watch rollouts, and pause, resume, retry or approve them",
		Long: "Watch rollouts: the state of each unit, and Events. Without an object, everything in\n" +
			"the namespace is watched until you quit. With an object, the command ends with its\n" +
			"rollout, which suits CI. For a ConfigMap or Secret, that is when all workloads have its\n" +
			"content; of a ConfigPolicy or ClusterConfigPolicy, when no release is under way.\n" +
			"\n" +
			"On a terminal, a tree is on the left and a timeline on the right. What exists is shown\n" +
			"first, and what is still being read is named until all of it is. p pauses, r resumes,\n" +
			"t retries and a approves what is selected; each asks for a reason. ? shows all keys.\n" +
			"q quits when the commands that you started have ended.\n" +
			"Elsewhere, with TERM=dumb and with LC_ALL=C, each change is one line. With -o, a rollout\n" +
			"is written again whenever it has changed: as one line of JSON, one document of YAML.\n" +
			"\n" +
			"The exit code is 0 when the rollout is complete or when you quit. It is 1 when the\n" +
			"rollout has failed, is stalled or was rolled back, or when the command is interrupted.\n" +
			"It is 2 after --timeout. If the rollout is complete already, the command ends immediately.",
		Example: "  spillway watch -n shop\n  spillway watch rolloutgroup/ingester -n mimir --timeout 10m\n  spillway watch secret/db -n shop --timeout 30m\n  spillway watch -A -l team=shop --sort-by name\n  spillway watch module/shop -n clusters --plain",
		Args:    command.AtMost(1, "name one as KIND/NAME, or leave it out"),
		RunE:    func(cmd *cobra.Command, args []string) error { return w.run(cmd, args) },
	}
	w.Query = command.NewQuery(env, cmd, command.OutputName)
	w.selection.AddFlags(cmd.Flags())
	command.ShownRingsFlag(cmd.Flags(), &w.look.Rings)
	cmd.Flags().BoolVarP(&w.all, "all-namespaces", "A", false, "watch all namespaces")
	cmd.Flags().BoolVar(&w.lines, "plain", false, "write one line for each change, also on a terminal")
	cmd.Flags().BoolVar(&w.eta, "eta", false, "when the rollouts that are under way end, as spillway forecast says")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "how long to wait for the rollout; 0 is no limit")
	return cmd
}

// listen hands on Events until it is time to read again.
func (w *watching) listen(ctx context.Context, on onlooker, notes <-chan history.Event) error {
	rest, changed := clock.RealClock{}.NewTimer(looksApart), false
	defer rest.Stop()
	var again <-chan struct{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // verdict says what it means
		case n := <-notes:
			if w.members == nil || w.members.Has(&n) {
				on.hears(&n)
			}
		case <-rest.C():
			again = w.mirror.Changed()
		case <-again:
			changed = true
		}
		if changed {
			return nil
		}
	}
}

// isOver is true of what is complete, and of what needs a user.
func isOver(u *describe.Unit) bool { return u.IsComplete() || hasFailed(u) }

// verdict is the error that the command ends with, nil if it succeeded.
func (w *watching) verdict(ctx context.Context, end *ended, err error) error {
	switch {
	case end != nil && hasFailed(&end.unit):
		return fmt.Errorf("%s: %s: %s", w.ref, strings.ToLower(string(end.unit.Phase)), end.unit.Sentence)
	case end != nil, ctx.Err() != nil && w.ref == nil:
		return nil
	case ctx.Err() != nil:
		return errInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return command.ExitError{Err: fmt.Errorf("%s is not complete after %s; it continues without this command", w.ref, w.timeout), Code: exitTimeout}
	default:
		return err
	}
}

func hasFailed(u *describe.Unit) bool {
	return slices.Contains([]rollout.Phase{rollout.PhaseFailed, describe.PhaseStalled, describe.PhaseRolledBack}, u.Phase)
}

func (w *watching) foresee(ctx context.Context, units []describe.Unit) error {
	moves := func(u describe.Unit) bool { return !u.IsComplete() }
	if !w.eta || !slices.ContainsFunc(units, moves) {
		return nil
	}
	if err := show.Ends(ctx, w.Query, present{w.mirror, w.live}, w.look.Config, w.namespace, units); err != nil {
		return lookError{fmt.Errorf("--eta: %w", err)}
	}
	return nil
}

// present is what a forecast begins with: what is watched, and from the API server itself the
// config, of which a watch keeps digests. What it gives is the caller's own.
type present struct {
	client.Client

	values client.Reader
}

// Get implements [client.Reader].
func (p present) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	switch obj.(type) {
	case *corev1.ConfigMap, *corev1.Secret:
		return p.values.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the client
	default:
		return p.Client.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the client
	}
}

// List implements [client.Reader].
func (p present) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list.(type) {
	case *corev1.ConfigMapList, *corev1.SecretList:
		return p.values.List(ctx, list, opts...) //nolint:wrapcheck // stands in for the client
	}
	if err := p.Client.List(ctx, list, opts...); err != nil {
		return err //nolint:wrapcheck // stands in for the client
	}
	var own []runtime.Object
	err := apimeta.EachListItem(list, func(obj runtime.Object) error {
		own = append(own, obj.DeepCopyObject())
		return nil
	})
	if err != nil {
		return fmt.Errorf("copy a list: %w", err)
	}
	return apimeta.SetList(list, own) //nolint:wrapcheck // as above
}

type sender struct{ program *tea.Program }

func (s sender) glimpses(part describe.Partial) { s.program.Send(glimpsed(part)) }

func (s sender) misses(err error, _ time.Time) { s.program.Send(missed{err}) }

func (s sender) hears(n *history.Event) { s.program.Send(heard{*n}) }

// interactively watches in a terminal, until the rollout has ended or the person quits.
// How it ended stays on the terminal.
func (w *watching) interactively(ctx context.Context, out io.Writer) error {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	errands := &errands{}
	model := w.model(ctx, out, errands)
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithOutput(out), tea.WithoutSignalHandler())
	var end *ended
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		end, failed = w.follow(watch, sender{program})
		program.Send(finished{})
	}()
	_, err := program.Run()
	cancel()
	<-done
	for _, answer := range errands.unheard() {
		_, _ = fmt.Fprintln(out, answer)
	}
	switch {
	case ctx.Err() != nil:
		return w.verdict(ctx, nil, nil)
	case err != nil:
		return err //nolint:wrapcheck // the terminal's own
	case model.interrupted && w.ref != nil:
		return errInterrupted
	case !model.ended: // the person has quit
		return nil
	}
	if end != nil {
		lines := &lineWriter{out: out, style: model.style, began: w.began}
		lines.sees([]describe.Unit{end.unit}, w.Env.Now())
	}
	return w.verdict(ctx, end, failed)
}

func (s sender) sees(units []describe.Unit, now time.Time) { s.program.Send(seen{units, now}) }

func (w *watching) model(ctx context.Context, out io.Writer, errands *errands) *watchModel {
	title := "spillway watch  namespace " + w.namespace
	switch {
	case w.ref != nil:
		title = strings.TrimSuffix("spillway watch  "+w.ref.String()+"  namespace "+w.namespace, "  namespace ")
	case w.namespace == "":
		title = "spillway watch  all namespaces"
	}
	return &watchModel{
		title: title, namespaces: w.namespace == "", style: display.StyleOf(out, w.Env.Lookup), steer: w.steer(ctx, errands), now: w.began,
		sentences: map[describe.Ref]string{}, folded: map[string]bool{},
	}
}

// errands are the commands that were given during the watch. What was asked for is
// done, also if they quit before it is.
type errands struct {
	running sync.WaitGroup

	mu    sync.Mutex
	given []*errand
}

// errand is a command, and what became of it; heard is true once the person was shown that.
type errand struct {
	answer steered
	heard  bool
}

// unheard waits for the commands that run, and returns the answers that were not shown.
// It is called once nothing is shown any more.
func (e *errands) unheard() []string {
	e.running.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	var answers []string
	for _, errand := range e.given {
		if !errand.heard {
			answers = append(answers, errand.answer.said)
		}
	}
	return answers
}

// steer gives a command as a person would type it, to the cluster that is watched.
func (w *watching) steer(ctx context.Context, errands *errands) func(args []string) tea.Cmd {
	return func(args []string) tea.Cmd {
		args = append([]string{w.Env.Args[0]}, args...)
		for flag, value := range map[string]string{"--kubeconfig": w.Cluster.Kubeconfig, "--context": w.Cluster.Context} {
			if value != "" {
				args = append(args, flag, value)
			}
		}
		return errands.do(func() steered {
			var said strings.Builder
			code := w.execute(ctx, command.Environment{Args: args, Out: &said, Err: &said, Lookup: w.Env.Lookup, Now: w.Env.Now})
			line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
			return steered{said: display.Plain(line), ok: code == 0}
		})
	}
}

// do begins a command, whose answer comes as a message.
func (e *errands) do(command func() steered) tea.Cmd {
	errand := &errand{}
	e.mu.Lock()
	e.given = append(e.given, errand)
	e.mu.Unlock()
	answered := make(chan struct{})
	e.running.Go(func() {
		errand.answer = command()
		errand.answer.heard = &errand.heard
		close(answered)
	})
	return func() tea.Msg {
		<-answered
		return errand.answer
	}
}
