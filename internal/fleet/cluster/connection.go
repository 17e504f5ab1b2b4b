package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A hub has thousands of connections, most of which wait. What is the same for all is kept once: the client with the
// kinds that it knows. What a connection has of its own is an [http.Client], and while it waits one stream.

// handshakeTimeout is how long a TLS handshake may take.
const handshakeTimeout = 10 * time.Second

// Client is what is asked of a cluster.
type Client interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
	Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error
}

// Kind is a kind that connections know.
type Kind struct {
	schema.GroupVersionKind

	ClusterScoped bool
}

// Connection is how to talk to a cluster.
type Connection struct {
	Client

	// Digest is that of the kubeconfig.
	Digest string
	http   *http.Client
	// base is the URL of the API server.
	base *url.URL
}

// NewClient returns the client of all clusters.
func NewClient(scheme *runtime.Scheme, kinds []Kind) (Client, error) {
	config := &rest.Config{QPS: -1, WarningHandlerWithContext: rest.NoWarnings{}}
	c, err := client.New(config, client.Options{HTTPClient: &http.Client{Transport: router{}}, Scheme: scheme, Mapper: mapperOf(kinds)})
	if err != nil {
		return nil, fmt.Errorf("make the client of the clusters: %w", err)
	}
	return c, nil
}

// router sends the requests of the client of all clusters to that of their context.
type router struct{}

// toConnection is the key of the connection in a context.
type toConnection struct{}

// RoundTrip implements [http.RoundTripper].
func (router) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(toConnection{}).(*Connection)
	if !ok {
		return nil, errors.New("the request names no cluster")
	}
	to := req.WithContext(req.Context())
	to.URL = c.base.JoinPath(req.URL.Path)
	to.URL.RawQuery, to.Host = req.URL.RawQuery, c.base.Host
	return c.http.Transport.RoundTrip(to) //nolint:wrapcheck // the client does
}

// routed is the client of all clusters for one of them.
type routed struct {
	all Client
	to  *Connection
}

func (r routed) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, toConnection{}, r.to)
}

// Get implements [Client].
func (r routed) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.all.Get(r.context(ctx), key, obj, opts...)
}

// Create implements [Client].
func (r routed) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return r.all.Create(r.context(ctx), obj, opts...)
}

// Patch implements [Client].
func (r routed) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return r.all.Patch(r.context(ctx), obj, patch, opts...)
}

// Delete implements [Client].
func (r routed) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return r.all.Delete(r.context(ctx), obj, opts...)
}

// dialless makes a connection without connecting.
func (r *Registry) dialless(kubeconfig []byte, digest string) (*Connection, error) {
	config, err := configOf(kubeconfig, r.options.Network)
	if err != nil {
		return nil, err
	}
	if r.options.Wrap != nil {
		config = r.options.Wrap(config)
	}
	transport, err := transportOf(config)
	if err != nil {
		return nil, &InvalidError{"the certificates cannot be read"}
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, &InvalidError{"invalid server URL"}
	}
	base.Path = cmp.Or(base.Path, "/") // what is joined to nothing is not absolute
	c := &Connection{Digest: digest, http: &http.Client{Transport: transport}, base: base}
	c.Client = routed{r.options.Asks, c}
	return c, nil
}

// transportOf is that of one cluster alone. No other client shares it, so that it is not kept for others when the
// kubeconfig changes, and its tables of headers that were sent before are empty: few requests are made.
func transportOf(config *rest.Config) (http.RoundTripper, error) {
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err //nolint:wrapcheck // dialless says what it is about
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return rest.HTTPWrappersForConfig(config, utilnet.SetTransportDefaults(&http.Transport{ //nolint:wrapcheck // dialless says what it is about
		Proxy: proxy, DialContext: config.Dial, TLSClientConfig: secure, TLSHandshakeTimeout: handshakeTimeout,
		HTTP2: &http.HTTP2Config{MaxEncoderHeaderTableSize: 1, MaxDecoderHeaderTableSize: 1},
	}))
}

// request asks the API server for a path.
func (c *Connection) request(ctx context.Context, path, query, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return nil, errors.New("invalid server URL")
	}
	req.URL = c.base.JoinPath(path)
	req.URL.RawQuery = query
	req.Header.Set("Accept", accept)
	return c.http.Do(req) //nolint:wrapcheck // it says what it is about
}

// answers returns an error unless the API server answers, whatever the answer: a refusal
// is an answer too. It returns late if the time ran out, and so the state is unknown.
func (c *Connection) answers(ctx context.Context, patience time.Duration) (late bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := c.request(ctx, "readyz", "", "*/*")
	if err != nil {
		return ctx.Err() != nil, errors.New(cause(err))
	}
	_ = res.Body.Close() // nothing of it matters
	if res.StatusCode >= http.StatusInternalServerError {
		return false, fmt.Errorf("the API server is not ready (%s)", res.Status)
	}
	return false, nil
}

// rests are buffers for what follows the first byte of a change: a watch that waits has none.
var rests = sync.Pool{New: func() any { return new([4 << 10]byte) }}

// Follow calls changed once it watches an object, and whenever that has changed, until the watch ends. What has
// changed is not read.
func (c *Connection) Follow(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, changed func()) error {
	path := "apis/" + resource.Group + "/" + resource.Version + "/namespaces/" + key.Namespace + "/" + resource.Resource
	query := url.Values{"watch": {"true"}, "fieldSelector": {"metadata.name=" + key.Name}}
	res, err := c.request(ctx, path, query.Encode(), "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // nothing of it matters any more
	if res.StatusCode != http.StatusOK {
		return apierrors.NewGenericServerResponse(res.StatusCode, http.MethodGet, resource.GroupResource(), key.Name, "", 0, true) //nolint:wrapcheck // its status matters
	}
	changed()
	first := make([]byte, 1)
	for {
		if _, err := io.ReadFull(res.Body, first); err != nil {
			return nil
		}
		if err := readLine(res.Body); err != nil {
			return nil
		}
		changed()
	}
}

// readLine reads a stream until that ends with a line.
func readLine(stream io.Reader) error {
	rest, ok := rests.Get().(*[4 << 10]byte)
	if !ok {
		return io.ErrUnexpectedEOF
	}
	defer rests.Put(rest)
	for {
		n, err := stream.Read(rest[:])
		if err != nil || n > 0 && rest[n-1] == '\n' {
			return err //nolint:wrapcheck // that it ends is all that matters
		}
	}
}

// mapperOf knows some kinds, all of them namespaced unless they are said not to be,
// so that discovery of all kinds of a cluster is not needed.
func mapperOf(kinds []Kind) apimeta.RESTMapper {
	mapper := apimeta.NewDefaultRESTMapper(nil)
	for _, k := range kinds {
		scope := apimeta.RESTScopeNamespace
		if k.ClusterScoped {
			scope = apimeta.RESTScopeRoot
		}
		mapper.Add(k.GroupVersionKind, scope)
	}
	return mapper
}
