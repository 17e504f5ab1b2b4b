package preparehook_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/zones/preparehook"
)

// TestMain names a proxy that does not answer: all calls of the tests succeed without.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		_ = os.Setenv(name, "http://127.0.0.1:1")
	}
	os.Exit(m.Run())
}

// A Pod is called by its name, at its address: the certificate is checked for the name,
// and the name need not be known to any resolver.
func TestByNameAtItsAddress(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	caller := preparehook.New(0, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		target preparehook.Target
		want   string
	}{
		"its address":             {preparehook.Target{URL: "https://example.com:" + u.Port(), IP: u.Hostname()}, ""},
		"no address":              {preparehook.Target{URL: server.URL}, ""},
		"another's certificate":   {preparehook.Target{URL: "https://example.org:" + u.Port(), IP: u.Hostname()}, "certificate"},
		"nothing at this address": {preparehook.Target{URL: "https://example.com:1", IP: u.Hostname()}, "refused"},
		"no URL":                  {preparehook.Target{URL: "https://[", IP: u.Hostname()}, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			got := caller.Call(t.Context(), http.MethodPost, []preparehook.Target{test.target})[0]
			if test.want == "" && got.Err != nil || test.want != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), test.want)) {
				t.Errorf("%v, want %q", got.Err, test.want)
			}
			if got.Reached != (test.want == "") || got.MayCount() != (test.want == "") || got.Pending {
				t.Errorf("%+v", got)
			}
		})
	}
}

// So many are called at a time, and no more.
func TestSlowOnesAreCalledSideBySide(t *testing.T) {
	const parallel = 32
	var (
		mu        sync.Mutex
		now, most int
		full      = make(chan struct{})
		fill      = sync.OnceFunc(func() { close(full) })
	)
	count := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		now += by
		if most = max(most, now); now == parallel {
			fill()
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		count(1)
		defer count(-1) // before the next may be called
		select {
		case <-full:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	for _, a := range preparehook.New(time.Minute, nil).Call(t.Context(), http.MethodDelete, make48(server.URL)) {
		if a.Err != nil {
			t.Errorf("%+v", a)
		}
	}
	if most != parallel {
		t.Errorf("%d at a time", most)
	}
}

// A Pod that does not answer costs its own time only, and may obey later.
func TestSilentOnes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	for _, a := range preparehook.New(time.Second, nil).Call(t.Context(), http.MethodDelete, make48(server.URL)) {
		if a.Err == nil || !a.MayCount() || !a.Pending {
			t.Errorf("%+v", a)
		}
	}
}

func make48(at string) []preparehook.Target {
	targets := make([]preparehook.Target, 48)
	for i := range targets {
		targets[i].URL = at
	}
	return targets
}

func pod(name string, change ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}}
	for _, c := range change {
		c(&p)
	}
	return p
}

// Issue 72: Pods that do not exist, or were never started, are not called.
func TestIssue72OnlyPodsThatCanListenAreCalled(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "zone-a"}}
	set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 10}
	pods := []corev1.Pod{
		pod("zone-a-10"), pod("zone-a-11"), pod("zone-a-13"), pod("zone-a-x"), pod("zone-ab-11"),
		pod("zone-a-12", func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }),
		pod("zone-a-14", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("zone-a-15", func(p *corev1.Pod) { p.Status.PodIP = "" }),
		pod("zone-a-16", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }),
		pod("zone-a-17"),
	}
	var got []string
	for _, p := range preparehook.Leaving(set, pods, 7, 1) {
		got = append(got, p.Name)
	}
	if want := "zone-a-11 zone-a-13 zone-a-15"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestTargets(t *testing.T) {
	at, err := url.Parse("https://anything:8080/a/b?c=d")
	if err != nil {
		t.Fatal(err)
	}
	e := preparehook.Endpoint{URL: *at, Service: "ingester"}
	got := e.Targets("mimir", preparehook.DefaultDomain, []corev1.Pod{pod("zone-a-1")})[0]
	want := preparehook.Target{Pod: "zone-a-1", URL: "https://zone-a-1.ingester.mimir.svc.cluster.local.:8080/a/b?c=d", IP: "10.0.0.1"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
