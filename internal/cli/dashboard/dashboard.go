// Package dashboard is the command dashboard, which serves pages to the person who typed it.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	forecastcommand "github.com/spillway-dev/spillway/internal/cli/forecast"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/dashboard"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

const (
	// usualPort is where the pages are, unless another port is chosen.
	usualPort = 8642
	// connections is how many there may be at a time.
	connections = 500
	// headerTimeout is how long a client may take to ask, idleTimeout how long it may be
	// silent, and stopTimeout how long the last answers may take at the end.
	headerTimeout, idleTimeout, stopTimeout = 5 * time.Second, time.Minute, time.Second
	// headerBytes is how long a request may be.
	headerBytes = 16 << 10
)

// serving is one run of the command.
type serving struct {
	*command.Query

	all  bool
	port int

	namespace string
	live      client.Client
	mirror    *snapshot.Watched
	rules     config.Options
}

// New returns the command dashboard.
func New(env command.Environment) *cobra.Command {
	s := &serving{}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve pages that show what moves, why it waits, what comes next, what happened",
		Long: "Serve pages on this machine that show what the commands status, explain, forecast and\n" +
			"history say. Nothing is installed in the cluster: what is shown is read with your own\n" +
			"permissions. The pages follow the cluster. What you do on them is done as the commands\n" +
			"pause, resume, retry, approve, refuse, rollback and fleet do it, by you.\n" +
			"\n" +
			"Open the address that is printed. It has a token, so that other users of this machine\n" +
			"do not see the pages. A program sends it as \"Authorization: Bearer TOKEN\", and gets\n" +
			"the JSON of the commands with \"Accept: application/json\".\n" +
			"\n" +
			"The exit code is 0 when it is stopped, for example by Ctrl+C.",
		Example: "  spillway dashboard -A\n  spillway dashboard -n mimir --port 0",
		Args:    command.None("name a namespace with -n, or all with -A"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	s.Query = command.NewUnprinted(env, cmd)
	cmd.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "show all namespaces")
	cmd.Flags().IntVar(&s.port, "port", usualPort, "the port on 127.0.0.1, 0 for any that is free")
	return cmd
}

func (s *serving) run(cmd *cobra.Command) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	switch {
	case s.all && s.Cluster.Namespace != "":
		return command.ErrBothNamespaces
	case s.port < 0 || s.port > 65535:
		return fmt.Errorf("--port: %d is no port; use one from 1 to 65535, or 0 for any that is free", s.port)
	}
	source, err := s.source(ctx)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		return fmt.Errorf("--port: %w; choose another, or 0 for any that is free", err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	token := dashboard.NewToken()
	server := &http.Server{
		Handler:           dashboard.New(ctx, source, token, address.Port),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	say(cmd.OutOrStdout(), address.Port, token)
	return serve(ctx, server, netutil.LimitListener(listener, connections))
}

func say(out io.Writer, port int, token string) {
	_, _ = fmt.Fprintf(out, "The dashboard is at http://127.0.0.1:%d/?%s\nStop it with Ctrl+C.\n", port, url.Values{"token": {token}}.Encode())
}

// serve serves until the context ends.
func serve(ctx context.Context, server *http.Server, on net.Listener) error {
	done := make(chan error, 1)
	go func() { done <- server.Serve(on) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve the pages: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := server.Shutdown(stop); errors.Is(err, context.DeadlineExceeded) {
		return server.Close() //nolint:wrapcheck // of what is given up
	}
	return nil
}

// source is the cluster, as the person may read it.
func (s *serving) source(ctx context.Context) (dashboard.Source, error) {
	none := dashboard.Source{}
	namespace, err := s.Cluster.ResolveNamespace()
	if err != nil {
		return none, err
	}
	if s.live, s.rules, err = s.Connect(ctx, namespace); err != nil {
		return none, err
	}
	place := "namespace " + namespace
	if s.all {
		namespace, place = "", "all namespaces"
	} else if err := command.NamespaceMissing(ctx, s.live, namespace); err != nil {
		return none, err
	}
	s.namespace = namespace
	if s.mirror, err = s.Mirror(ctx, s.live, namespace, true); err != nil {
		return none, err
	}
	if s.Cluster.Context != "" {
		place += " of context " + s.Cluster.Context
	}
	return dashboard.Source{
		Place: place, Namespace: namespace, Now: s.Env.Now, Changed: s.mirror.Changed(),
		Look: s.look, Of: s.of, Explain: s.explain, Forecast: s.forecast,
		Named: func(namespace, object string) (describe.Ref, error) {
			return describe.Named(s.Cluster.RESTMapper, namespace, object)
		},
		History: func(ctx context.Context, ref describe.Ref) ([]history.Entry, error) {
			return history.History(ctx, s.live, ref)
		},
		Steering: &person{client: s.live, now: s.Env.Now, words: s.Cluster.Words()},
	}, nil
}

func (s *serving) look(ctx context.Context) (describe.Description, error) {
	if err := s.mirror.Reaches(ctx); err != nil {
		return describe.Description{}, err
	}
	return describe.Describe(ctx, s.mirror, describe.Options{Config: s.rules, Namespace: s.namespace})
}

// of is what is rolled for an object.
func (s *serving) of(ctx context.Context, ref describe.Ref) (*describe.Unit, error) {
	found, err := describe.Describe(ctx, s.mirror, describe.Options{Config: s.rules, Namespace: ref.Namespace, Object: &ref})
	return describe.Find(found.Units, ref), err
}

func (s *serving) explain(ctx context.Context, ref describe.Ref) (chain.Chain, error) {
	return explain.Explain(ctx, chain.World{Client: s.mirror, Options: s.rules, Dial: command.Dial, Flags: s.Cluster.Words()}, ref)
}

func (s *serving) forecast(ctx context.Context, namespace, object string, ifs []forecast.Supposition) (forecast.Answer, error) {
	options, err := forecastcommand.Present(ctx, s.Query, s.live, s.rules, namespace, world.DefaultReady)
	if err != nil {
		return forecast.Answer{}, err
	}
	return forecast.Compare(ctx, options, object, ifs)
}
