package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Nodes: 3}) }

func TestNothingIsLeftAfterTheStop(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := processesIn(t, cp.Dir); n == 0 {
		t.Error("no process runs in the folder, so this test proves nothing")
	}
	if err := cp.Stop(); err != nil {
		t.Error(err)
	}
	mustBeGone(t, cp.Dir)
}

func TestWhatStaysIsEndedByItsFolder(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Stay: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.Leave(); err != nil {
		t.Error(err)
	}
	if err := controlplane.StopAt(cp.Dir); err != nil {
		t.Error(err)
	}
	mustBeGone(t, cp.Dir)
	if err := controlplane.StopAt(cp.Dir); err == nil {
		t.Error("stopped twice")
	}
}

func mustBeGone(t *testing.T, dir string) {
	t.Helper()
	testenv.Eventually(t, func(context.Context) error {
		if n := processesIn(t, dir); n > 0 {
			return fmt.Errorf("%d processes are left", n)
		}
		return nil
	})
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

// processesIn counts the processes that have the folder among their arguments.
func processesIn(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && strings.Contains(string(raw), dir) {
			n++
		}
	}
	return n
}

func TestTheAPIServerCanGoAwayAndComeBack(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c, err := cp.Clientset()
	if err != nil {
		t.Fatal(err)
	}
	cp.StopAPIServer()
	if _, err := c.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("it still answers")
	}
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAnExistingClusterIsUsedAndLeftAlone(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_KUBECONFIG", testenv.Shared().Kubeconfig())
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cp.Config().Host, testenv.Shared().Config().Host; got != want {
		t.Errorf("host = %s, want %s", got, want)
	}
	if err := cp.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(testenv.Shared().Dir); err != nil {
		t.Errorf("the existing cluster was ended: %v", err)
	}
}

// shareWith hands out a control plane, or an error, to this process.
func shareWith(t *testing.T, start func() (*controlplane.ControlPlane, error)) {
	t.Helper()
	socket, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	go controlplane.HandOut(socket, start)
	t.Setenv(controlplane.SharedVariable, socket.Addr().String())
}

// A control plane that was handed out serves API servers beside it, and stops with them alone.
func TestWhatIsHandedOutIsSharedAndLeftAlone(t *testing.T) {
	shared := testenv.Shared()
	shareWith(t, func() (*controlplane.ControlPlane, error) { return shared, nil })
	if _, err := controlplane.StartOrShare(t.Context(), controlplane.Options{Nodes: 1000}); err == nil || !strings.Contains(err.Error(), "1000 are needed") {
		t.Errorf("err = %v", err)
	}
	cp, err := controlplane.StartOrShare(t.Context(), controlplane.Options{Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	if !cp.Shared || cp.Config().Host != shared.Config().Host {
		t.Errorf("it is %s, want %s", cp.Config().Host, shared.Config().Host)
	}
	beside, err := cp.Beside(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.Stop(); err != nil {
		t.Error(err)
	}
	mustBeGone(t, beside.Dir)
	if err := newClient(t).List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Errorf("what is shared was ended: %v", err)
	}
}

func TestThereIsNothingToShare(t *testing.T) {
	shareWith(t, func() (*controlplane.ControlPlane, error) { return nil, errors.New("etcd has ended") })
	if _, err := controlplane.StartOrShare(t.Context(), controlplane.Options{}); err == nil || !strings.Contains(err.Error(), "etcd has ended") {
		t.Errorf("err = %v", err)
	}
}

func TestAssetsThatAreNotThere(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	_, err := controlplane.Assets(t.Context(), os.Stderr)
	if err == nil || !strings.Contains(err.Error(), "KUBEBUILDER_ASSETS=") {
		t.Errorf("err = %v", err)
	}
}

// pod is a Pod with annotations for kwok.
func pod(namespace, annotations string) *corev1.Pod {
	p := &corev1.Pod{}
	text := fmt.Sprintf(`{metadata: {name: p, namespace: %s, annotations: {%s}}, spec: {containers: [{name: c, image: x}]}}`, namespace, annotations)
	if err := yaml.Unmarshal([]byte(text), p); err != nil {
		panic(err)
	}
	return p
}

func TestPodsDoWhatTheirAnnotationsSay(t *testing.T) {
	for name, test := range map[string]struct {
		annotations string
		want        func(*corev1.Pod) error
	}{
		"ready immediately": {"", isReady},
		"ready later":       {`testenv.spillway.dev/ready-after: 300ms`, isReady},
		"never ready":       {`testenv.spillway.dev/behavior: never-ready`, isRunningNotReady},
		"crashing":          {`testenv.spillway.dev/behavior: crash`, isCrashing},
		"completing":        {`testenv.spillway.dev/behavior: complete`, hasPhase(corev1.PodSucceeded)},
		"failing":           {`testenv.spillway.dev/behavior: fail`, hasPhase(corev1.PodFailed)},
		"an address of own": {`testenv.spillway.dev/pod-ip: 127.9.8.7`, hasIP("127.9.8.7")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := newClient(t), pod(testenv.Namespace(t), test.annotations)
			if err := c.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
					return err
				}
				return test.want(p)
			})
			if err := c.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err == nil {
					return errors.New("it still exists")
				}
				return nil
			})
		})
	}
}

// What kwok has decided about a Pod that has gone does not hit the next one of its name.
func TestKwokLeavesTheNextPodOfANameAlone(t *testing.T) {
	kwok, err := client.New(testenv.Shared().ConfigAs("kwok", "system:masters"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := pod(testenv.Namespace(t), "")
	if err := newClient(t).Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error { // once the API server knows the policy
		if err := kwok.Delete(ctx, p, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("deleting a Pod that runs: %w", err)
		}
		return nil
	})
	if err := kwok.Delete(t.Context(), p, client.GracePeriodSeconds(0)); !apierrors.IsForbidden(err) {
		t.Errorf("kwok deleted a Pod that runs: %v", err)
	}
	late := client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata": {"uid": "of-an-earlier-pod"}, "status": {"message": "late"}}`))
	if err := kwok.Status().Patch(t.Context(), p, late); err == nil {
		t.Error("kwok wrote the status of another Pod")
	}
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

func isReady(p *corev1.Pod) error {
	if condition(p, corev1.PodReady) != corev1.ConditionTrue || p.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("status = %+v", p.Status)
	}
	return nil
}

func isRunningNotReady(p *corev1.Pod) error {
	if condition(p, corev1.PodReady) != corev1.ConditionFalse || p.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("status = %+v", p.Status)
	}
	return nil
}

func isCrashing(p *corev1.Pod) error {
	if len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].State.Waiting == nil ||
		p.Status.ContainerStatuses[0].State.Waiting.Reason != "CrashLoopBackOff" {
		return fmt.Errorf("status = %+v", p.Status)
	}
	return isRunningNotReady(p)
}

func hasPhase(phase corev1.PodPhase) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Status.Phase != phase {
			return fmt.Errorf("phase = %s", p.Status.Phase)
		}
		return nil
	}
}

// hasIP is satisfied by a Pod whose address answers, because the test listens there.
func hasIP(ip string) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Status.PodIP != ip {
			return fmt.Errorf("address = %q", p.Status.PodIP)
		}
		l, err := net.Listen("tcp", net.JoinHostPort(p.Status.PodIP, "0"))
		if err != nil {
			return err
		}
		server := &http.Server{Handler: http.NotFoundHandler()}
		go func() { _ = server.Serve(l) }()
		defer func() { _ = server.Close() }()
		res, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			return err
		}
		return res.Body.Close()
	}
}

func TestJobsCompleteOrFail(t *testing.T) {
	for name, test := range map[string]struct {
		annotations string
		want        batchv1.JobConditionType
	}{
		"complete": {"", batchv1.JobComplete},
		"fail":     {`testenv.spillway.dev/behavior: fail`, batchv1.JobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &batchv1.Job{}
			create(t, job, fmt.Sprintf(`{metadata: {name: j, namespace: %s}, spec: {backoffLimit: 0, template: {metadata: {annotations: {%s}},
			  spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}`, testenv.Namespace(t), test.annotations))
			testenv.Eventually(t, func(ctx context.Context) error {
				if err := newClient(t).Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
					return err
				}
				for _, c := range job.Status.Conditions {
					if c.Type == test.want && c.Status == corev1.ConditionTrue {
						return nil
					}
				}
				return fmt.Errorf("conditions = %+v", job.Status.Conditions)
			})
		})
	}
}

func TestStatefulSetsSpreadOverTheZones(t *testing.T) {
	ns, set := testenv.Namespace(t), &appsv1.StatefulSet{}
	create(t, set, fmt.Sprintf(`{metadata: {name: s, namespace: %s}, spec: {replicas: 3, serviceName: s, selector: {matchLabels: {app: s}},
	  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: x}], topologySpreadConstraints: [
	    {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: s}}}]}}}}`, ns))
	c := newClient(t)
	testenv.Eventually(t, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if set.Status.ReadyReplicas != 3 {
			return fmt.Errorf("%d are ready", set.Status.ReadyReplicas)
		}
		return nil
	})
	pods, nodes := &corev1.PodList{}, &corev1.NodeList{}
	if err := errors.Join(c.List(t.Context(), pods, client.InNamespace(ns)), c.List(t.Context(), nodes)); err != nil {
		t.Fatal(err)
	}
	zoneOf, zones := map[string]string{}, map[string]bool{}
	for _, n := range nodes.Items {
		zoneOf[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	for _, p := range pods.Items {
		zones[zoneOf[p.Spec.NodeName]] = true
	}
	if len(zones) != 3 {
		t.Errorf("zones = %v", zones)
	}
}

func newClient(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func create[T interface {
	client.Object
	runtime.Object
}](t testing.TB, obj T, text string) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), obj); err != nil {
		t.Fatal(err)
	}
	if err := newClient(t).Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}
