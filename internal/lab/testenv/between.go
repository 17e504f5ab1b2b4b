package testenv

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Between is the path of a kubeconfig of an administrator whose requests pass a handler before the
// API server answers them, to the end of the test.
func Between(t testing.TB, handler func(next http.Handler) http.Handler) (kubeconfig string) {
	t.Helper()
	cfg := Shared().Config()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	server := httptest.NewServer(handler(proxy))
	t.Cleanup(server.CloseClientConnections)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "x", Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "x"}}, Clusters: map[string]*clientcmdapi.Cluster{"x": {Server: server.URL}},
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// Held is such a kubeconfig with which the API server does not answer what is asked of a path until
// the gate is closed.
func Held(t testing.TB, path string, gate <-chan struct{}) (kubeconfig string) {
	t.Helper()
	return Between(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				select {
				case <-gate:
				case <-r.Context().Done():
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	})
}
