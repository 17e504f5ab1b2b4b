// Package dashboard is the command dashboard, which serves pages to the person who typed it.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/dashboard"
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

type serving struct {
	*command.Query

	all  bool
	port int
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
	hosted, _ := newServe(env)
	cmd.AddCommand(hosted)
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
	server := newServer(ctx, dashboard.New(ctx, source, token, address.Port))
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "The dashboard is at http://127.0.0.1:%d/?%s\nStop it with Ctrl+C.\n", address.Port, url.Values{"token": {token}}.Encode())
	return serve(ctx, server, netutil.LimitListener(listener, connections))
}

// newServer returns a server that does not wait long for a client.
func newServer(ctx context.Context, pages http.Handler) *http.Server {
	return &http.Server{
		Handler: pages, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

func serve(ctx context.Context, server *http.Server, on net.Listener) error {
	return serveBy(ctx, server, func() error { return server.Serve(on) })
}

func serveBy(ctx context.Context, server *http.Server, run func() error) error {
	done := make(chan error, 1)
	go func() { done <- run() }()
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
	r := reader{Query: s.Query, dial: command.Dial, words: s.Cluster.Words()}
	if r.live, r.rules, err = s.Connect(ctx, namespace); err != nil {
		return none, err
	}
	if s.all {
		namespace = ""
	} else if err := command.NamespaceMissing(ctx, r.live, namespace); err != nil {
		return none, err
	}
	if err := r.watch(ctx, namespace); err != nil {
		return none, err
	}
	source := r.source()
	if s.Cluster.Context != "" {
		source.Place += " of context " + s.Cluster.Context
	}
	source.Steering = r.person()
	return source, nil
}
