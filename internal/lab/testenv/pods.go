package testenv

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// PodIP is the annotation of a Pod template that gives its Pods a loopback address.
const PodIP = "testenv.spillway.dev/pod-ip"

// Pods is a real HTTP server on the loopback address of the Pods of a StatefulSet. It
// tells the Pods apart by the host that is asked for. POST prepares a Pod, and answers
// since when it is; DELETE undoes that.
type Pods struct {
	IP, Port string

	mu       sync.Mutex
	prepared map[string]time.Time
	calls    map[string]int
	answers  map[string]http.HandlerFunc
	now      func() time.Time
}

// ServePods starts a server until the end of the test.
func ServePods(t testing.TB) *Pods {
	t.Helper()
	p := &Pods{prepared: map[string]time.Time{}, calls: map[string]int{}, answers: map[string]http.HandlerFunc{}, now: time.Now}
	ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(200), rand.IntN(250), 1+rand.IntN(250))
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: p}}
	server.Start()
	t.Cleanup(server.Close)
	p.IP, p.Port, _ = net.SplitHostPort(l.Addr().String())
	return p
}

// Answer makes a Pod answer in its own way; nil ends that.
func (p *Pods) Answer(pod string, how http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[pod] = how
}

// ServeHTTP answers for a Pod.
func (p *Pods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pod, _, _ := strings.Cut(r.Host, ".")
	p.mu.Lock()
	p.calls[r.Method+" "+pod]++
	how := p.answers[pod]
	p.mu.Unlock()
	if how != nil {
		how(w, r)
		return
	}
	p.Obey(w, r)
}

// Obey prepares a Pod on POST, and undoes that on DELETE.
func (p *Pods) Obey(w http.ResponseWriter, r *http.Request) {
	pod, _, _ := strings.Cut(r.Host, ".")
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method == http.MethodDelete {
		delete(p.prepared, pod)
		return
	}
	if _, already := p.prepared[pod]; !already {
		p.prepared[pod] = p.now()
	}
	_, _ = fmt.Fprintf(w, `{"timestamp": %d}`, p.prepared[pod].Unix())
}

// Prepared are the Pods that are prepared, by name.
func (p *Pods) Prepared() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.prepared))
}

// Since makes a Pod one that has been prepared for a while.
func (p *Pods) Since(pod string, ago time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepared[pod] = p.now().Add(-ago)
}

// Calls are how often Pods were called: "POST zone-a-1".
func (p *Pods) Calls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.calls)
}
