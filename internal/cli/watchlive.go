package cli

import (
	"context"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/spillway-dev/spillway/internal/standing"
)

// sender hands on to the model what is seen and heard.
type sender struct{ program *tea.Program }

// sees implements [onlooker].
func (s sender) sees(units []standing.Unit, now time.Time) { s.program.Send(seen{units, now}) }

// misses implements [onlooker].
func (s sender) misses(err error, _ time.Time) { s.program.Send(missed{err}) }

// hears implements [onlooker].
func (s sender) hears(n *standing.Note) { s.program.Send(heard{*n}) }

// interactively watches in a terminal, until the rollout has ended or the person quits.
// How it ended stays on the terminal.
func (w *watching) interactively(ctx context.Context, out io.Writer) error {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	model := w.model(watch, out)
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
	switch {
	case ctx.Err() != nil:
		return w.verdict(ctx, nil, nil)
	case err != nil:
		return err //nolint:wrapcheck // the terminal's own
	case !model.ended: // the person has quit
		return nil
	}
	if end != nil {
		lines := &lineWriter{out: out, style: model.style, began: w.began}
		lines.sees([]standing.Unit{end.unit}, w.env.Now())
	}
	return w.verdict(ctx, end, failed)
}

func (w *watching) model(ctx context.Context, out io.Writer) *watchModel {
	title := "spillway watch  namespace " + w.namespace
	switch {
	case w.ref != nil:
		title = "spillway watch  " + w.ref.String() + "  namespace " + w.namespace
	case w.namespace == "":
		title = "spillway watch  all namespaces"
	}
	return &watchModel{
		title: title, namespaces: w.namespace == "", style: styleOf(out, w.env.Lookup), steer: w.steer(ctx), now: w.began,
		sentences: map[standing.Ref]string{}, folded: map[string]bool{},
	}
}

// steer gives a command as a person would type it, to the cluster that is watched.
func (w *watching) steer(ctx context.Context) func(args []string) tea.Cmd {
	return func(args []string) tea.Cmd {
		args = append([]string{w.env.Args[0]}, args...)
		for flag, value := range map[string]string{"--kubeconfig": w.cluster.kubeconfig, "--context": w.cluster.context} {
			if value != "" {
				args = append(args, flag, value)
			}
		}
		return func() tea.Msg {
			var said strings.Builder
			code := Run(ctx, Environment{Args: args, Out: &said, Err: &said, Lookup: w.env.Lookup, Now: w.env.Now})
			line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
			return steered{said: plain(line), ok: code == 0}
		}
	}
}
