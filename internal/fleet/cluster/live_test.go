package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

func TestMain(m *testing.M) { testenv.MainFleet(m, 2) }

// hub is a namespace of the hub, with a registry and a directory of its clusters.
type hub struct {
	*testing.T

	client    client.Client
	namespace string
	registry  *cluster.Registry
	directory *cluster.Directory
	faults    *fault.Injector
	told      atomic.Int32
}

func newHub(t *testing.T) *hub {
	t.Helper()
	return newHubWith(t, cluster.Options{})
}

// newHubWith is newHub with some choices.
func newHubWith(t *testing.T, o cluster.Options) *hub {
	t.Helper()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{T: t, client: c, namespace: testenv.Namespace(t), faults: fault.New()}
	mgr, err := ctrl.NewManager(h.faults.Wrap(testenv.Shared().Config()), ctrl.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{h.namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if h.directory, err = cluster.NewDirectory(t.Context(), mgr, []string{h.namespace}); err != nil {
		t.Fatal(err)
	}
	if o.Asks, err = cluster.NewClient(scheme.Scheme, []cluster.Kind{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap")}}); err != nil {
		t.Fatal(err)
	}
	o.Live = mgr.GetAPIReader()
	o.Now, o.BackOff, o.BackOffMax = time.Now, 50*time.Millisecond, time.Second
	h.registry = cluster.NewRegistry(o)
	h.registry.Subscribe(func(types.NamespacedName) { h.told.Add(1) })
	if err := mgr.Add(h.registry); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *hub) create(obj client.Object) {
	h.Helper()
	if err := h.client.Create(h.Context(), obj); err != nil {
		h.Fatal(err)
	}
}

func (h *hub) key(secret string) types.NamespacedName {
	return types.NamespacedName{Namespace: h.namespace, Name: secret}
}

// connect asks for a connection as a controller does.
func (h *hub) connect(name string) (*cluster.Connection, error) {
	key := h.key(cluster.SecretName(name))
	version, err := h.directory.SecretVersion(h.Context(), key)
	if err != nil {
		return nil, err
	}
	return h.registry.Connect(h.Context(), key, version)
}

// connected waits for a connection.
func (h *hub) connected(name string) *cluster.Connection {
	h.Helper()
	var conn *cluster.Connection
	testenv.Eventually(h, func(context.Context) (err error) {
		conn, err = h.connect(name)
		return err
	})
	return conn
}

// fails waits until there is no connection for a reason that says this.
func (h *hub) fails(name, reason string) {
	h.Helper()
	testenv.Eventually(h, func(context.Context) error {
		if _, err := h.connect(name); err == nil || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("%w, not %q", err, reason)
		}
		return nil
	})
}

// clusters are those of the namespace, as "name ready" and "name not ready".
func (h *hub) clusters(want ...string) {
	h.Helper()
	testenv.Eventually(h, func(ctx context.Context) error {
		all, err := h.directory.List(ctx, h.namespace)
		if err != nil {
			return err
		}
		got := []string{}
		for _, c := range all {
			state := map[bool]string{true: "ready", false: "not ready"}[c.Ready]
			got = append(got, c.Object.Kind+" "+c.Name+" "+state)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("there are %v, not %v", got, want)
		}
		return nil
	})
}

func (h *hub) clusterAPI(name string, labels map[string]string) *unstructured.Unstructured {
	h.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)}}}}
	u.SetGroupVersionKind(cluster.GVK)
	u.SetNamespace(h.namespace)
	u.SetName(name)
	u.SetLabels(labels)
	h.create(u)
	return u
}

func (h *hub) initialized(u *unstructured.Unstructured, yes bool) {
	h.Helper()
	before := u.DeepCopy()
	if err := unstructured.SetNestedField(u.Object, yes, "status", "initialization", "controlPlaneInitialized"); err != nil {
		h.Fatal(err)
	}
	if err := h.client.Status().Patch(h.Context(), u, client.MergeFrom(before)); err != nil {
		h.Fatal(err)
	}
}

func TestClustersOfClusterAPI(t *testing.T) {
	h := newHub(t)
	h.clusters()
	c := h.clusterAPI("c1", map[string]string{"env": "prod"})
	h.clusters("Cluster c1 not ready")
	h.initialized(c, true)
	h.clusters("Cluster c1 not ready") // without a kubeconfig nothing can be assigned
	secret := testenv.KubeconfigSecret(t, h.namespace, "c1", testenv.Workload(0))
	secret.Labels = map[string]string{"spillway.dev/cluster": "true"}
	h.create(secret)
	h.clusters("Cluster c1 ready")
	all, err := h.directory.List(t.Context(), h.namespace)
	if err != nil {
		t.Fatal(err)
	}
	if got := cluster.Select(all, labels.SelectorFromSet(labels.Set{"env": "prod"})); len(got) != 1 || got[0].UID != c.GetUID() || got[0].Secret() != "c1-kubeconfig" {
		t.Errorf("selected %v", got)
	}
	h.initialized(c, false)
	h.clusters("Cluster c1 not ready") // and is still one of them
	if err := h.client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.clusters("Secret c1 ready") // the label alone makes it one
}

func TestClustersWithoutClusterAPI(t *testing.T) {
	h := newHub(t)
	h.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "unlabeled-kubeconfig"}})
	secret := testenv.KubeconfigSecret(t, h.namespace, "c1", testenv.Workload(0))
	secret.Labels = map[string]string{"spillway.dev/cluster": "true"}
	h.create(secret)
	h.clusters("Secret c1 ready")
	secret.Labels = nil
	if err := h.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	h.clusters()
}

func TestARotatedKubeconfig(t *testing.T) {
	h := newHub(t)
	h.fails("c1", cluster.ErrMissing.Error())
	secret := testenv.KubeconfigSecret(t, h.namespace, "c1", testenv.Workload(0))
	h.create(secret)
	first := h.connected("c1")
	if err := first.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "none"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("it does not talk to the cluster: %v", err)
	}
	version := secret.ResourceVersion
	secret.Annotations = map[string]string{"touched": "yes"}
	h.update(secret)
	h.seesVersionAfter(secret, version)
	if again := h.connected("c1"); again != first {
		t.Error("the same kubeconfig makes another client")
	}
	good := secret.Data["value"]
	secret.Data["value"] = []byte("{")
	h.update(secret)
	h.fails("c1", "not a kubeconfig")
	secret.Data["value"] = append(slices.Clone(good), '\n')
	h.update(secret)
	if second := h.connected("c1"); second == first || second.Digest == first.Digest {
		t.Error("another kubeconfig makes no other client")
	}
	if err := h.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	h.fails("c1", cluster.ErrMissing.Error())
}

func (h *hub) update(secret *corev1.Secret) {
	h.Helper()
	if err := h.client.Update(h.Context(), secret); err != nil {
		h.Fatal(err)
	}
}

func (h *hub) seesVersionAfter(secret *corev1.Secret, version string) {
	h.Helper()
	testenv.Eventually(h, func(ctx context.Context) error {
		now, err := h.directory.SecretVersion(ctx, client.ObjectKeyFromObject(secret))
		if err != nil || now == version {
			return fmt.Errorf("still version %s: %w", now, err)
		}
		return nil
	})
}

// The loss of a cluster is reported once, and once more when it is back.
func TestAClusterThatGoesAwayAndComesBack(t *testing.T) {
	h := newHub(t)
	h.create(testenv.KubeconfigSecret(t, h.namespace, "c2", testenv.Workload(1)))
	conn := h.connected("c2")
	h.wasNotified(1)
	testenv.Workload(1).StopAPIServer()
	err := conn.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, &corev1.ConfigMap{})
	if !cluster.IsConnection(err) {
		t.Errorf("%v is no failure of the connection", err)
	}
	if _, err := h.connect("c2"); err != nil {
		t.Errorf("no caller suspects it, and yet: %v", err)
	}
	h.registry.Suspect(h.key("c2-kubeconfig"))
	h.fails("c2", "the cluster does not answer: connection refused")
	h.wasNotified(2)
	var down *cluster.UnreachableError
	if _, err := h.connect("c2"); !errors.As(err, &down) || down.Since.IsZero() {
		t.Errorf("%v does not say since when", err)
	}
	if err := testenv.Workload(1).StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.connected("c2") != conn {
		t.Error("it is the same kubeconfig, and another connection")
	}
	h.wasNotified(3)
}

// A cluster that falls silent is noticed when a caller wants to know whether it answers, when it
// does not answer a request in time, and when a request has failed because of that.
func TestAClusterThatFallsSilent(t *testing.T) {
	for name, test := range map[string]func(h *hub, key types.NamespacedName){
		"verified": func(h *hub, key types.NamespacedName) {
			h.registry.Verify(key, time.Hour) // it has answered within that time
			if _, err := h.connect("c1"); err != nil {
				h.Error(err)
			}
			h.registry.Verify(key, 0)
		},
		"expected": func(h *hub, key types.NamespacedName) { h.registry.Expect(t.Context(), key) },
		"failed": func(h *hub, key types.NamespacedName) {
			h.registry.Failed(key, context.DeadlineExceeded)
			if _, err := h.connect("c1"); !errors.Is(err, cluster.ErrUnproven) {
				h.Errorf("until it has answered it says %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHubWith(t, cluster.Options{FirstPatience: 300 * time.Millisecond, Patience: time.Second})
			secret, line := testenv.KubeconfigByLine(t, h.namespace, "c1", testenv.Workload(0))
			h.create(secret)
			h.connected("c1")
			line.Cut()
			test(h, h.key("c1-kubeconfig"))
			h.fails("c1", cluster.Silent+": no answer in time")
		})
	}
}

// A request that took too long says nothing of a cluster that answers: callers are woken once
// it has.
func TestAClusterThatAnswersAfterARequestHasFailed(t *testing.T) {
	h := newHub(t)
	h.create(testenv.KubeconfigSecret(t, h.namespace, "c1", testenv.Workload(0)))
	conn := h.connected("c1")
	h.wasNotified(1)
	h.registry.Failed(h.key("c1-kubeconfig"), errors.New("connection reset by peer"))
	if _, err := h.connect("c1"); err != nil {
		t.Errorf("another failure changes nothing: %v", err)
	}
	h.registry.Failed(h.key("c1-kubeconfig"), context.DeadlineExceeded)
	h.wasNotified(2)
	if h.connected("c1") != conn {
		t.Error("it is the same kubeconfig, and another connection")
	}
}

// wasNotified waits until it was notified so many times that a cluster answers, or does not. The state
// can be seen a moment before the notification.
func (h *hub) wasNotified(times int32) {
	h.Helper()
	testenv.Eventually(h, func(context.Context) error {
		if now := h.told.Load(); now != times {
			return fmt.Errorf("it was notified %d times, not %d", now, times)
		}
		return nil
	})
}

// Clusters that take a connection and never say a word do not delay the one that
// does answer, however many they are and however long the probes take; and no caller that
// asks for them waits.
func TestClustersThatDoNotAnswerDelayNoOtherCluster(t *testing.T) {
	h := newHubWith(t, cluster.Options{FirstPatience: time.Second, Patience: time.Minute})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n" +
		"users: [{name: u, user: {token: t}}]\nclusters: [{name: k, cluster: {server: 'https://" + silent.Addr().String() + "'}}]\n"
	for i := range 110 { // more than are probed at a time
		h.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: fmt.Sprintf("silent-%d-kubeconfig", i)},
			Data:       map[string][]byte{"value": []byte(kubeconfig)},
		})
		testenv.Eventually(t, func(context.Context) error {
			if _, err := h.connect(fmt.Sprintf("silent-%d", i)); !errors.Is(err, cluster.ErrUnproven) {
				return err
			}
			return nil
		})
	}
	h.create(testenv.KubeconfigSecret(t, h.namespace, "c1", testenv.Workload(0)))
	h.connected("c1")
	if _, err := h.connect("silent-0"); !errors.Is(err, cluster.ErrUnproven) {
		t.Errorf("it was waited for: %v", err)
	}
}

// A kubeconfig is read once for each version of its Secret.
func TestSecretsAreReadOnce(t *testing.T) {
	h := newHub(t)
	h.create(testenv.KubeconfigSecret(t, h.namespace, "c1", testenv.Workload(0)))
	h.connected("c1")
	for range 10 {
		h.connected("c1")
	}
	reads := 0
	for _, r := range h.faults.Requests() {
		if r.Resource == "secrets" && r.Verb == "get" {
			reads++
		}
	}
	if reads != 1 {
		t.Errorf("it was read %d times", reads)
	}
}
