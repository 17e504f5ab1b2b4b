package models

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// Endpoints answer for the Pods that are called to prepare for a downscale, or to stay. A
// Pod that is ready does so immediately, unless it is one of those that fail. It is a
// transport, so that no call leaves the process. Pods are called side by side.
type Endpoints struct {
	*world.World

	mu sync.Mutex
	// failing are those that refuse to prepare: "statefulset/x" or "pod/x-0".
	failing map[string]bool
	// prepared is since when Pods are prepared, by UID.
	prepared map[types.UID]time.Time
	// Called are the StatefulSets of which Pods were called to prepare.
	Called map[record.Key]bool
}

// RoundTrip implements [http.RoundTripper].
func (e *Endpoints) RoundTrip(req *http.Request) (*http.Response, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pod := e.called(req.URL.Hostname())
	if pod == nil || !isReady(pod) {
		return nil, fmt.Errorf("connection to %s refused", req.URL.Host)
	}
	kind, name := owning(pod)
	if req.Method == http.MethodDelete {
		delete(e.prepared, pod.UID)
		return answer(req, http.StatusOK, ""), nil
	}
	e.Called[record.KeyOf(kind, pod.Namespace, name)] = true
	for _, of := range []string{record.Reference(kind, name), record.Reference("pod", pod.Name)} {
		if e.Met[of] = true; e.failing[of] {
			return answer(req, http.StatusInternalServerError, ""), nil
		}
	}
	if _, already := e.prepared[pod.UID]; !already {
		e.prepared[pod.UID] = e.Now
	}
	return answer(req, http.StatusOK, fmt.Sprintf(`{"timestamp": %d}`, e.prepared[pod.UID].Unix())), nil
}

// called is the Pod of a host such as pod.service.namespace.svc.cluster.local, nil if
// there is none.
func (e *Endpoints) called(host string) *corev1.Pod {
	parts := strings.SplitN(host, ".", 4) //nolint:mnd // the Pod, its Service, its namespace and the rest
	if len(parts) < 3 {
		return nil
	}
	pod, _ := e.Store.Object(&corev1.Pod{}, types.NamespacedName{Namespace: parts[2], Name: parts[0]}).(*corev1.Pod)
	return pod
}

func answer(req *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Request: req, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

// fork remembers the same in another world.
func (e *Endpoints) fork(w *world.World) *Endpoints {
	return &Endpoints{World: w, failing: e.failing, prepared: maps.Clone(e.prepared), Called: map[record.Key]bool{}}
}
