package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// holding is a kubeconfig of the API server that does not answer what is asked of a path until the
// gate is closed.
func holding(t *testing.T, path string, gate <-chan struct{}) (kubeconfig string) {
	t.Helper()
	transport, err := rest.TransportFor(testenv.Shared().Config())
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(testenv.Shared().Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }() // the client is gone
		if r.URL.Path == path {
			select {
			case <-gate:
			case <-r.Context().Done():
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.CloseClientConnections)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "x", Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "x"}}, Clusters: map[string]*clientcmdapi.Cluster{"x": {Server: server.URL}},
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// TestDashboardBeforeAllIsRead: while the API server lists, the first page names the workloads and
// what is still being read; a program waits for their states, and the page has them then.
func TestDashboardBeforeAllIsRead(t *testing.T) {
	namespace := testenv.Namespace(t)
	user, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testenv.ApplyManifest(t, user, strings.Replace(waitsForSecret, "metadata: {", "metadata: {namespace: "+namespace+", ", 1))
	gate := make(chan struct{})
	p := openDashboard(t, "-n", namespace, "--namespaces", namespace, "--kubeconfig", holding(t, "/api/v1/namespaces/"+namespace+"/secrets", gate))
	shows := func(wants []string, not ...string) {
		t.Helper()
		testenv.Eventually(t, func(context.Context) error {
			text, err := p.send(http.MethodGet, "/", nil, http.StatusOK)
			for _, want := range wants {
				if err == nil && !strings.Contains(text, want) {
					err = fmt.Errorf("it does not say %q: %s", want, text)
				}
			}
			for _, other := range not {
				if err == nil && strings.Contains(text, other) {
					err = fmt.Errorf("it says %q: %s", other, text)
				}
			}
			return err
		})
	}
	shows([]string{"Still reading: config", "What is being read", "/why/deployment/web?namespace=" + namespace}, "Nothing moves", "What waits")
	found, answered := describe.Description{}, make(chan error, 1)
	go func() { answered <- p.get("/", &found) }()
	close(gate)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if units := describe.Rolled(found.Units); len(units) != 1 || !strings.Contains(units[0].Sentence, "Secret db") {
		t.Errorf("a program gets %+v", found)
	}
	shows([]string{"What waits", "Secret db"}, "Still reading", "being read")
}

