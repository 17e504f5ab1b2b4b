//go:build linux

package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/ring"
)

// last is the name of a workload that no first screen shows. No letter of it is at the same
// place in the names of the others, so that the terminal is sent all of it.
const last = "quokka"

// maxRequests is how many requests may come before everything is on the screen, however much there is. On
// top of them are the pages of the config of which no manager has written the hash yet.
const maxRequests = 50

// TestWatchOfMuch opens, filters, pauses, resizes and quits with many workloads, on a narrow
// terminal and a wide one. What it reads it lists once, and follows from then on.
func TestWatchOfMuch(t *testing.T) {
	workloads := testenv.Size(300, 5_000)
	namespace := testenv.Namespace(t)
	installKinds(t)
	c := deployMany(t, namespace, workloads)
	recordMany(t, c, namespace, workloads)
	program, err := exec.LookPath("spillway")
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []uint16{60, 120} {
		t.Run(fmt.Sprintf("%d columns", width), func(t *testing.T) {
			proxy := newProxy(t)
			began := time.Now()
			term := inTerminalWith(t, []string{"KUBECONFIG=" + proxy.kubeconfig, "SPILLWAY_NAMESPACES=" + namespace}, width, 24, program, "watch", "-n", namespace)
			term.shows(t, "deployment/w-0000")
			first := time.Since(began)
			term.shows(t, "Progressing")
			all, asked := time.Since(began), proxy.requests.Load()
			if most := maxRequests + int64(workloads/snapshot.PageSize); asked > most {
				t.Errorf("%d requests until everything is read, more than %d", asked, most)
			}
			term.shows(t, "q quit")
			term.press(t, "/"+last)
			term.shows(t, "deployment/"+last)
			term.press(t, "\rp")
			term.shows(t, "pause deployment/"+last+"; why?")
			term.press(t, "because\r")
			term.shows(t, "deployment/"+last+" paused")
			testenv.Eventually(t, func(ctx context.Context) error { return isPaused(ctx, c, namespace, true) })
			for _, other := range []uint16{180 - width, width} {
				drawn := len(term.screen.String())
				term.resize(t, other, 30)
				term.showsAfter(t, drawn, "deployment/"+last+" paused")
			}
			term.press(t, "r")
			term.shows(t, "resume deployment/"+last+"; why?")
			term.press(t, "enough\rq")
			if err := <-term.done; err != nil {
				t.Errorf("it ends with %v", err)
			}
			worked := term.cmd.ProcessState.UserTime() + term.cmd.ProcessState.SystemTime()
			fmt.Printf("| watch, %d workloads, %d columns: first screen (target: 1 s); with all states; processor time of all keys; requests | %.2f s; %.2f s; %.2f s; %d |\n", workloads, width, first.Seconds(), all.Seconds(), worked.Seconds(), asked)
			term.shows(t, "\x1b[?1049l")
			if err := isPaused(t.Context(), c, namespace, false); err != nil {
				t.Error(err)
			}
			proxy.check(t)
		})
	}
}

// showsAfter waits until a text is written after so much else was.
func (term *terminal) showsAfter(t *testing.T, drawn int, text string) {
	t.Helper()
	testenv.Eventually(t, func(context.Context) error {
		if screen := term.screen.String(); !strings.Contains(screen[drawn:], text) {
			return fmt.Errorf("%q is not on the screen: %q", text, screen[drawn:])
		}
		return nil
	})
}

// isPaused is an error if the last workload is not, though it should be, or the other way.
func isPaused(ctx context.Context, c client.Client, namespace string, want bool) error {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: last}, d); err != nil {
		return err
	}
	if is := d.Annotations["spillway.dev/pause"] != ""; is != want {
		return fmt.Errorf("the annotations of a workload whose pause should be %t are %v", want, d.Annotations)
	}
	return nil
}

// deployMany makes workloads without Pods, each with a ConfigMap.
func deployMany(t *testing.T, namespace string, n int) client.Client {
	t.Helper()
	cfg := rest.CopyConfig(testenv.Shared().Config())
	cfg.QPS = -1
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		name := fmt.Sprintf("w-%04d", i)
		if i == n-1 {
			name = last
		}
		group.Go(func() error {
			meta, labels := metav1.ObjectMeta{Namespace: namespace, Name: name}, map[string]string{"app": name}
			if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"level": "debug"}}); err != nil {
				return err
			}
			meta.Annotations = map[string]string{"spillway.dev/update-on-config-change": "true"}
			return c.Create(t.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}},
				}}}},
			}})
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error { return isObserved(ctx, c, namespace) })
	return c
}

// recordMany records what a manager would have decided: all workloads are next. No manager rolls
// them, so that they stay in this state.
func recordMany(t *testing.T, c client.Client, namespace string, n int) {
	t.Helper()
	next := v1alpha1.RolloutCause{State: ring.StateNext, Does: "is next", Count: int32(n), Units: []string{"Deployment " + last}}
	for i := range n - 1 {
		next.Units = append(next.Units, fmt.Sprintf("Deployment w-%04d", i))
	}
	if err := record(t.Context(), c, namespace, v1alpha1.ConfigRolloutObject{}, next); err != nil {
		t.Fatal(err)
	}
}

// isObserved is an error while the controller of Deployments has not seen all of them: what it
// does would take time from what is measured.
func isObserved(ctx context.Context, c client.Client, namespace string) error {
	list := &appsv1.DeploymentList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if d := &list.Items[i]; d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("deployment %s was not observed", d.Name)
		}
	}
	return nil
}

// proxy stands before the API server, and counts what is listed.
type proxy struct {
	kubeconfig string

	requests atomic.Int64

	mu    sync.Mutex
	lists map[string]int
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	cfg := testenv.Shared().Config()
	to, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{lists: map[string]int{}}
	forward := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.count(r)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.CloseClientConnections)
	p.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: '" + server.URL + "'}}], contexts: [{name: c, context: {cluster: c}}]}"
	if err := os.WriteFile(p.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// count counts requests that are answered with all objects of a kind, also the watches that
// begin with them.
func (p *proxy) count(r *http.Request) {
	p.requests.Add(1)
	query := r.URL.Query()
	follows := query.Get("watch") != "" && query.Get("sendInitialEvents") == ""
	if r.Method != http.MethodGet || follows || !collections.MatchString(r.URL.Path) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	query.Del("timeoutSeconds") // of chance
	p.lists[r.URL.Path+"?"+query.Encode()]++
}

// collections are the paths of all objects of a kind, in a namespace or in all.
var collections = regexp.MustCompile(`^(/api|/apis/[^/]+)/v[^/]+(/namespaces/[^/]+)?/[^/]+$`)

// check finds what was listed more than once.
func (p *proxy) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for list, n := range p.lists {
		if n > 1 {
			t.Errorf("%d requests of %s", n, list)
		}
	}
	if len(p.lists) == 0 {
		t.Error("nothing was listed")
	}
}
