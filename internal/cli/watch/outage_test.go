package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// outage lets through what watches bring, and nothing that is asked while it lasts.
type outage struct{ is atomic.Bool }

func (o *outage) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if o.is.Load() {
			return nil, errors.New("connection refused")
		}
		return next.RoundTrip(r)
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// recorder remembers what it was shown last, and how often it was shown nothing.
type recorder struct {
	mu     sync.Mutex
	units  []describe.Unit
	looks  int
	missed int
}

func (r *recorder) sees(units []describe.Unit, _ time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.units, r.looks = units, r.looks+1
}

func (r *recorder) misses(error, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missed++
}

func (r *recorder) hears(*history.Event) {}

// await waits until what was recorded is as it should be.
func (r *recorder) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	testenv.Eventually(t, func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !is() {
			return fmt.Errorf("%s: after %d looks and %d that failed there is %+v", what, r.looks, r.missed, r.units)
		}
		return nil
	})
}

// watchThrough is a watch of the config of a namespace, whose requests pass something.
func watchThrough(ctx context.Context, t *testing.T, namespace string, wrap func(http.RoundTripper) http.RoundTripper) *watching {
	t.Helper()
	at := rest.CopyConfig(testenv.Shared().Config())
	at.Wrap(wrap)
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	live, err := client.NewWithWatch(at, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	mirror, err := snapshot.Watch(ctx, at, live, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return &watching{
		Query: &command.Query{Env: command.Environment{Now: time.Now}}, live: live, mirror: mirror, namespace: namespace,
		look: describe.Options{Namespace: namespace, Rings: []string{describe.Config}, Config: config.Options{Now: time.Now}},
	}
}

// A watch outlives an API server that does not answer for a while, of which it tells.
func TestAWatchOutlivesAnOutage(t *testing.T) {
	namespace, down := testenv.Namespace(t), &outage{}
	direct, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := watchThrough(ctx, t, namespace, down.wrap)
	seen, done := &recorder{}, make(chan error, 1)
	go func() {
		_, err := w.follow(ctx, seen)
		done <- err
	}()
	seen.await(t, "nothing exists yet", func() bool { return seen.looks > 0 })
	down.is.Store(true)
	if err := direct.Create(ctx, waitingForASecret(namespace)); err != nil {
		t.Fatal(err)
	}
	seen.await(t, "there is an outage", func() bool { return seen.missed > 0 })
	down.is.Store(false)
	seen.await(t, "it is over", func() bool {
		return len(seen.units) == 1 && seen.units[0].Phase == describe.PhaseUnseen
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v", err)
	}
}

// What ends while a cache is being filled is the patience, whatever the cache says of it.
func TestAWatchEndsWhileItWaitsForACache(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := watchThrough(ctx, t, testenv.Namespace(t), func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/deployments") && r.URL.Query().Get("limit") != "1" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return next.RoundTrip(r)
		})
	})
	w.timeout, w.ref = time.Second, &describe.Ref{Kind: "Deployment", Namespace: w.namespace, Name: "web"}
	end, err := w.follow(ctx, &recorder{})
	coded, ok := errors.AsType[command.ExitError](w.verdict(ctx, end, err))
	if !ok || coded.Code != exitTimeout {
		t.Errorf("it ends with %v", err)
	}
}

func waitingForASecret(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Annotations: map[string]string{"spillway.dev/update-on-config-change": "true"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}},
			}}}},
		},
	}
}
