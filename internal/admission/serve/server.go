package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/semaphore"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/metrics"
)

const (
	// maxConnections bounds what clients that send nothing can take. An API
	// server keeps at most a few dozen.
	maxConnections = 512
	// headerTimeout and readTimeout end clients that are slow on purpose.
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	// writeTimeout is more than the longest timeout that a webhook can have.
	writeTimeout = 45 * time.Second
	// idleTimeout is more than that of the API server's client, so that it is the
	// client who closes, and never during a request.
	idleTimeout    = 3 * time.Minute
	maxHeaderBytes = 16 << 10
	// drainTimeout is how long requests may take that are being answered when
	// the server is asked to stop.
	drainTimeout = 10 * time.Second
)

// Server serves the webhooks of all rings. Every replica does: it needs no leader.
type Server struct {
	address string
	mux     *http.ServeMux
	log     logr.Logger
	// certificate is what is served; nil until there is one.
	certificate atomic.Pointer[tls.Certificate]
	listening   atomic.Bool
	// keys and clients show who is an API server.
	keys    *Keys
	clients *Clients
}

// New checks that each declared path has one route, and that each route
// was declared.
func New(address string, webhooks []admission.Webhook, routes []admission.Route, keys *Keys, clients *Clients, log logr.Logger) (*Server, error) {
	s := &Server{address: address, mux: http.NewServeMux(), log: log, keys: keys, clients: clients}
	handlers := map[string]admission.Route{}
	for _, r := range routes {
		if _, twice := handlers[r.Path]; twice || r.Handler == nil {
			return nil, fmt.Errorf("path %q must have one handler", r.Path)
		}
		handlers[r.Path] = r
	}
	if err := admission.Validate(webhooks); err != nil {
		return nil, err
	}
	bytes := semaphore.NewWeighted(maxBytes)
	for _, w := range webhooks {
		r, ok := handlers[w.Path]
		if !ok {
			return nil, fmt.Errorf("webhook %q is declared, but has no handler at %q", w.Name, w.Path)
		}
		if w.Marked {
			s.handle(w.MarkedPath(), w, marking{r.Handler}, r.Blind, bytes)
			r.Handler = unmarked{r.Handler}
		}
		s.handle(w.Path, w, r.Handler, r.Blind, bytes)
		delete(handlers, w.Path)
	}
	for path := range handlers {
		return nil, fmt.Errorf("the handler at %q has no declared webhook", path)
	}
	return s, nil
}

// handle serves a path, with a key and without.
func (s *Server) handle(path string, w admission.Webhook, handler, blind webhook.Handler, bytes *semaphore.Weighted) {
	e := newEndpoint(w, handler, s.log, bytes)
	e.blind, e.shown = blind, s.shown
	s.mux.Handle(path, e)
	s.mux.Handle(path+"/{key}", e)
}

// shown is true if a request has shown to be an API server's.
func (s *Server) shown(ctx context.Context, r *http.Request) bool {
	return s.clients.include(r) || s.keys.accepts(ctx, r.PathValue("key"))
}

// NeedLeaderElection is false: every replica serves.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends, and then finishes what was begun.
func (s *Server) Start(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("serve webhooks at %s: %w", s.address, err)
	}
	return s.serve(ctx, l)
}

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	lasting := context.WithoutCancel(ctx) // requests outlive the order to stop
	srv := s.httpServer(lasting)
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(lasting, drainTimeout)
		defer cancel()
		drained <- srv.Shutdown(ctx)
	})
	defer stop()
	s.listening.Store(true)
	s.log.Info("serving webhooks", "address", l.Addr().String())
	err := srv.ServeTLS(netutil.LimitListener(l, maxConnections), "", "")
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve webhooks at %s: %w", s.address, err)
	}
	return <-drained
}

// httpServer speaks HTTP/1.1 only: the API server asks webhooks for nothing
// else, and the attacks on HTTP/2 have nothing to work with.
func (s *Server) httpServer(ctx context.Context) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: s.mux, Protocols: protocols, TLSConfig: s.tlsConfig(),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(logr.ToSlogHandler(s.log.V(1)), slog.LevelInfo),
	}
}

// tlsConfig allows TLS 1.3, and of 1.2 what has forward secrecy and is authenticated.
func (s *Server) tlsConfig() *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := s.certificate.Load(); c != nil {
				return c, nil
			}
			return nil, errors.New("no certificate yet")
		},
	}
	s.clients.configure(config, s.log)
	return config
}

// Present makes the server present a certificate from the next handshake on.
func (s *Server) Present(c *tls.Certificate) {
	s.certificate.Store(c)
	metrics.AdmissionExpiry.Set(float64(c.Leaf.NotAfter.Unix()))
}

// Certificate is what the server presents, nil if there is none yet.
func (s *Server) Certificate() *tls.Certificate { return s.certificate.Load() }

// IsListening is true once the server accepts connections.
func (s *Server) IsListening() bool { return s.listening.Load() }
