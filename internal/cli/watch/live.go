package watch

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

// sender hands on to the model what is seen and heard.
type sender struct{ program *tea.Program }

// glimpses implements [firstOnlooker].
func (s sender) glimpses(part describe.Partial) { s.program.Send(glimpsed(part)) }

// misses implements [onlooker].
func (s sender) misses(err error, _ time.Time) { s.program.Send(missed{err}) }

// hears implements [onlooker].
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

// sees implements [onlooker].
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
