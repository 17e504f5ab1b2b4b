package dashboard

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	kudov1beta1 "github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/dashboard"
	"github.com/spillway-dev/spillway/internal/dashboard/hosted"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/outbound"
)

// streams is how many requests a client may make at a time by one connection.
const streams = 50

type hosting struct {
	*command.Query

	given *pflag.FlagSet

	listen, probes, self, certificates string
	steering                           bool
	groups                             []string
	connections                        int
	limits                             hosted.Limits

	login                hosted.Login
	secretFile, issuerCA string
	proxy                hosted.Proxy
	proxyAddresses       []string
	proxyCA              string

	keyFile     string
	keyRequired bool
	offered     []string
}

func newServe(env command.Environment) (*cobra.Command, *hosting) {
	h := &hosting{limits: hosted.DefaultLimits()}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the pages to many people, in a cluster",
		Long: "Serve the pages to people who are known by OpenID Connect or by an authenticating\n" +
			"proxy. All is read and done as the person who asks, with her permissions: the account\n" +
			"of this command may impersonate users and groups, and needs nothing else.\n" +
			"\n" +
			"Installations run it with \"dashboard.enabled: true\" in the values.\n" +
			"\n" +
			"The exit code is 0 when it is stopped by a signal.",
		Example: "  spillway dashboard serve --url=https://a.example --proxy-addresses=10.1.2.3",
		Args:    command.None("everything is a flag"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			h.given = cmd.Flags()
			return h.run(cmd)
		},
	}
	h.Query = command.NewUnprinted(env, cmd)
	h.addFlags(cmd.Flags())
	h.addLoginFlags(cmd.Flags())
	h.addProxyFlags(cmd.Flags())
	return cmd, h
}

func (h *hosting) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&h.self, "url", "", "address at which browsers reach the pages, such as https://spillway.example.com")
	flags.StringVar(&h.listen, "listen", ":8443", "address to serve the pages on, by TLS")
	flags.StringVar(&h.probes, "probes", ":8081", "address to serve /healthz and /readyz on")
	flags.StringVar(&h.certificates, "tls-dir", "", "folder with tls.crt and tls.key; as long as they do not exist, the certificate is self-signed")
	flags.BoolVar(&h.steering, "steering", false, "let people pause, resume, approve and more, each with their own permissions (default: the pages only show)")
	flags.StringSliceVar(&h.groups, "groups", nil, "groups, with their prefix, that people are in here; \"*\" for all that are claimed (default: none)")
	flags.IntVar(&h.connections, "connections", connections, "how many connections there may be at a time")
	flags.IntVar(&h.limits.OfAddress, "connections-per-address", h.limits.OfAddress, "how many of them one address may have, the proxy excepted; behind a load balancer that hides addresses, as many as --connections")
	flags.IntVar(&h.limits.Following, "pages-per-user", h.limits.Following, "how many pages of one user are kept up to date at a time")
	flags.StringSliceVar(&h.offered, "offer-namespaces", nil, "namespaces to offer to users who may see them, if they may not list namespaces")
	flags.StringVar(&h.keyFile, "session-key-file", "", "file with the keys that sessions are sealed with, one a line, by the first; not used if it does not exist: then sessions end when this process does")
	flags.BoolVar(&h.keyRequired, "session-key-required", false, "do not start without a key in that file; for several of these servers beside each other, of which each accepts the sessions of the others")
	flags.IntVar(&h.limits.Looks, "looks", h.limits.Looks, "how many users may look at the cluster at a time, each with watches of their own")
	flags.DurationVar(&h.limits.Away, "look-idle", h.limits.Away, "how long these watches stay open without a viewer")
	flags.DurationVar(&h.limits.Life, "look-lifetime", h.limits.Life, "how long what a user may see is shown before it is read again, and so how long what they may not see any more")
}

func (h *hosting) addLoginFlags(flags *pflag.FlagSet) {
	l := &h.login
	flags.StringVar(&l.Issuer, "oidc-issuer-url", "", "issuer of OpenID Connect at which people log in")
	flags.StringVar(&l.ClientID, "oidc-client-id", "", "client as which the issuer knows the dashboard")
	flags.StringVar(&h.secretFile, "oidc-client-secret-file", "", "file with the secret of the client; not used if it does not exist")
	flags.StringVar(&h.issuerCA, "oidc-ca-file", "", "file with the certificates of the issuer's authority (default: those of the system)")
	flags.StringSliceVar(&l.Scopes, "oidc-scopes", []string{"profile", "email"}, "scopes to ask for besides openid")
	flags.StringVar(&l.Claims.User, "oidc-username-claim", "sub", "claim with the name of the user")
	flags.StringVar(&l.Claims.UserPrefix, "oidc-username-prefix", "", "what the name begins with in the cluster, - for nothing (default: ISSUER#, and nothing for the claim email; as kube-apiserver does)")
	flags.StringVar(&l.Claims.Groups, "oidc-groups-claim", "", "claim with the groups of the user")
	flags.StringVar(&l.Claims.GroupsPrefix, "oidc-groups-prefix", "", "what the names of groups begin with in the cluster")
	flags.DurationVar(&l.Sessions.Lifetime, "session-lifetime", 8*time.Hour, "how long a session lasts at most") //nolint:mnd // a working day
	flags.DurationVar(&l.Sessions.Idle, "session-idle", time.Hour, "how long a session lasts while no page is opened")
}

func (h *hosting) addProxyFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&h.proxyAddresses, "proxy-addresses", nil, "addresses of the authenticating proxy whose headers name the user, such as 10.1.2.0/28; all others are refused")
	flags.StringVar(&h.proxyCA, "proxy-client-ca-file", "", "file with the certificates of the authority that has signed the proxy's client certificate (default: no certificate is asked for)")
	flags.StringVar(&h.proxy.User, "proxy-user-header", "X-Forwarded-User", "header with the name of the user")
	flags.StringVar(&h.proxy.Groups, "proxy-groups-header", "X-Forwarded-Groups", "header with the groups of the user, separated by commas")
}

func (h *hosting) run(cmd *cobra.Command) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if min(h.connections, h.limits.OfAddress, h.limits.Following, h.limits.Looks) < 1 || h.limits.Life <= 0 || h.limits.Away <= 0 {
		return errors.New("--connections, --connections-per-address, --pages-per-user, --looks, --look-idle and --look-lifetime: must be more than 0")
	}
	o, authorities, err := h.options()
	if err != nil {
		return err
	}
	manager.LimitMemory(manager.Root(), os.Getenv, logr.Discard())
	pages, err := hosted.New(ctx, o)
	if err != nil {
		return err
	}
	certificate, err := hosted.NewCertificate(h.certificates, o.URL.Hostname(), h.Env.Now)
	if err != nil {
		return fmt.Errorf("--tls-dir: %w", err)
	}
	limited := func(address, flag string, also func(net.Listener) net.Listener) (net.Listener, error) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		return netutil.LimitListener(also(l), h.connections), nil
	}
	forPages, err := limited(h.listen, "listen", pages.LimitAddresses)
	if err != nil {
		return err
	}
	forProbes, err := limited(h.probes, "probes", func(l net.Listener) net.Listener { return l })
	if err != nil {
		return err
	}
	server := newServer(ctx, pages)
	server.TLSConfig, server.HTTP2 = hosted.TLS(certificate, authorities), &http.HTTP2Config{MaxConcurrentStreams: streams}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "The dashboard of %s listens on %s.\n", o.URL, forPages.Addr())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, newServer(ctx, http.HandlerFunc(alive)), forProbes)
		cancel()
	}()
	err = serveBy(ctx, server, func() error { return server.ServeTLS(forPages, "", "") })
	cancel()
	return errors.Join(err, <-ended)
}

func alive(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
		w.WriteHeader(http.StatusNotFound)
	}
}

// CheckArguments says why the command would not start with some arguments.
func CheckArguments(env command.Environment, args []string) error {
	cmd, h := newServe(env)
	if err := cmd.Flags().Parse(args); err != nil {
		return command.FlagError(cmd, err)
	}
	_, err := h.choose()
	return err
}

func (h *hosting) choose() (*hosted.Options, error) {
	self, err := url.Parse(h.self)
	if err != nil || h.self == "" {
		return nil, errors.New("--url: name the address at which browsers reach the pages, such as https://spillway.example.com")
	}
	if h.Cluster.Namespace != "" {
		if err := command.CheckNamespaces("namespace", h.Cluster.Namespace); err != nil {
			return nil, err
		}
	}
	if err := command.CheckNamespaces("offer-namespaces", h.offered...); err != nil {
		return nil, err
	}
	if h.keyRequired && h.keyFile == "" {
		return nil, errors.New("--session-key-required: name the file with the key with --session-key-file")
	}
	o := &hosted.Options{URL: self, Namespace: h.Cluster.Namespace, Open: h.open, Namespaces: h.namespaces, Limits: h.limits, Clock: clock.RealClock{}}
	switch isLogin, isProxy := h.login.Issuer != "", len(h.proxyAddresses) > 0; {
	case isLogin && isProxy:
		return nil, errors.New("--oidc-issuer-url and --proxy-addresses: people are known by one of them; leave the other out")
	case isLogin:
		o.Login = &h.login
	case isProxy:
		o.Proxy = &h.proxy
	default:
		return nil, errors.New("no user could log in: name an issuer of OpenID Connect with --oidc-issuer-url and --oidc-client-id, or an authenticating proxy with --proxy-addresses")
	}
	return o, nil
}

// options are what the flags say, and the authorities of the proxy's certificate.
func (h *hosting) options() (*hosted.Options, *x509.CertPool, error) {
	o, err := h.choose()
	if err != nil {
		return nil, nil, err
	}
	if o.Keys, err = h.keys(); err != nil {
		return nil, nil, err
	}
	switch {
	case o.Login != nil:
		return o, nil, h.completeLogin()
	default:
		authorities, err := h.completeProxy()
		return o, authorities, err
	}
}

// keys are those of the file, nil if it does not exist.
func (h *hosting) keys() (*hosted.Keys, error) {
	raw, err := os.ReadFile(h.keyFile)
	switch {
	case h.keyFile == "", errors.Is(err, os.ErrNotExist) && !h.keyRequired:
		return nil, nil //nolint:nilnil // it makes its own
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("--session-key-file: %s does not exist; put a key into the Secret spillway-dashboard as session-key, such as openssl rand -base64 32 makes", h.keyFile)
	case err != nil:
		return nil, fmt.Errorf("--session-key-file: %w", err)
	}
	keys, err := hosted.ParseKeys(string(raw))
	if err != nil {
		return nil, fmt.Errorf("--session-key-file: %w", err)
	}
	return keys, nil
}

func (h *hosting) completeLogin() error {
	h.login.May = h.groups
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: headerTimeout}
	if h.issuerCA != "" {
		pool, err := authorities("oidc-ca-file", h.issuerCA)
		if err != nil {
			return err
		}
		transport.TLSClientConfig = hosted.Trusting(pool)
	}
	h.login.HTTP = &http.Client{Transport: transport}
	if h.secretFile != "" {
		h.login.ClientSecret = func() (string, error) {
			raw, err := os.ReadFile(h.secretFile)
			if errors.Is(err, os.ErrNotExist) {
				return "", nil
			}
			if err != nil {
				return "", fmt.Errorf("read the secret of the client: %w", err)
			}
			return strings.TrimSpace(string(raw)), nil
		}
	}
	return nil
}

func (h *hosting) completeProxy() (*x509.CertPool, error) {
	h.proxy.May = h.groups
	for _, text := range h.proxyAddresses {
		at, ok := outbound.ParseNetwork(text)
		if !ok {
			return nil, fmt.Errorf("--proxy-addresses: %q is no address and no range of them; write 10.1.2.3 or 10.1.2.0/28", text)
		}
		h.proxy.Addresses = append(h.proxy.Addresses, at)
	}
	if h.proxyCA == "" {
		return nil, nil //nolint:nilnil // it needs no certificate
	}
	h.proxy.Certified = true
	return authorities("proxy-client-ca-file", h.proxyCA)
}

func authorities(flag, file string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(file) //nolint:gosec // who installs it names it
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("--%s: %s has no certificates", flag, file)
	}
	return pool, nil
}

// tried is how many namespaces a person is asked about at most.
const tried = 50

// shown are kinds of which a person sees a namespace if they may list one of them there.
var shown = []schema.GroupResource{
	{Group: "apps", Resource: "deployments"}, {Group: "apps", Resource: "statefulsets"},
	{Group: kudov1beta1.GroupVersion.Group, Resource: "instances"}, {Group: fleetv1alpha1.GroupVersion.Group, Resource: "modules"},
}

func (h *hosting) open(ctx context.Context, who hosted.Person, namespace string) (*dashboard.Source, error) {
	r := reader{Query: h.asGiven()}
	if err := r.Cluster.ActAs(who.User, who.Groups); err != nil {
		return nil, err
	}
	var err error
	if r.live, r.rules, err = r.Connect(ctx, namespace); err != nil {
		return nil, err
	}
	if err := r.watch(ctx, namespace); err != nil {
		return nil, err
	}
	source := r.source()
	if h.steering {
		source.Steering = r.person()
	}
	return &source, nil
}

// asGiven returns the flags as they were given: what one person may see of the manager's Deployment
// must not change what others see.
func (h *hosting) asGiven() *command.Query {
	cmd := &cobra.Command{}
	q := command.NewUnprinted(h.Env, cmd)
	command.CopyFlags(cmd.Flags(), h.given)
	return q
}

// namespaces are those that a person may see, of those that they may list or that are offered:
// the API server does not say which ones a user may see.
func (h *hosting) namespaces(ctx context.Context, who hosted.Person) ([]string, error) {
	q := h.asGiven()
	if err := q.Cluster.ActAs(who.User, who.Groups); err != nil {
		return nil, err
	}
	c, err := q.Cluster.Client()
	if err != nil {
		return nil, err
	}
	names := slices.Clone(h.offered)
	list := kube.MetadataList(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := c.List(ctx, list, client.Limit(tried)); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list namespaces as %s: %w", who.User, err)
	}
	for i := range list.Items {
		if !slices.Contains(h.offered, list.Items[i].Name) {
			names = append(names, list.Items[i].Name)
		}
	}
	var found []string
	for _, name := range names[:min(len(names), tried)] {
		ok, err := mayList(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// mayList is true if a person may list something of a namespace that the pages show.
func mayList(ctx context.Context, c client.Client, namespace string) (bool, error) {
	for _, of := range shown {
		ok, err := act.May(ctx, c, &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Group: of.Group, Resource: of.Resource})
		if err != nil {
			return false, fmt.Errorf("ask what may be seen in namespace %s: %w", namespace, err)
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}
