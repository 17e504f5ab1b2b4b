//go:build browser

package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Nodes: 3}) }

// story is what the pages show.
type story struct {
	t      *testing.T
	client client.Client
}

// begin has nothing on the pages yet.
func begin(t *testing.T) *story {
	t.Helper()
	t.Setenv("KUBECONFIG", testenv.Shared().Kubeconfig())
	c := testenv.Client(t)
	return &story{t: t, client: c}
}

// tell has all rings come to where each of them waits, in a way of its own.
func tell(t *testing.T) *story {
	t.Helper()
	s := begin(t)
	if out := s.spillway("install", "--rings=config,zones,plans,fleet,assemblage", "--webhooks=false", "--", "--max-rolling=2"); !strings.Contains(out, "customresourcedefinition") {
		t.Fatal(out)
	}
	text, err := os.ReadFile("testdata/story.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.apply(string(text))
	for _, name := range []string{"basket", "catalog", "orders", "reports", "search", "web"} {
		s.apply(fmt.Sprintf(usesPrices, name))
	}
	s.group("ingester", "r1")
	s.group("store", "r1")
	for _, cluster := range []string{"canary", "eu-1", "eu-2", "us-1"} {
		s.join(cluster)
	}
	s.manage()
	s.says("6 Complete", "status", "-n", "shop", "--ring", "config")
	s.says("Complete", "explain", "rolloutgroup/ingester", "-n", "mimir")
	s.group("ingester", "r2")
	s.says("Complete", "explain", "rolloutgroup/store", "-n", "mimir")
	for i, image := range []string{"r2", "r3"} { // its history has two rollouts
		s.group("store", image)
		s.says(fmt.Sprintf("rollout %d  Complete", i+1), "history", "rolloutgroup/store", "-n", "mimir")
	}
	s.says("gate errors is pending", "explain", "rolloutgroup/ingester", "-n", "mimir")
	s.until(func(ctx context.Context) error {
		s.report(ctx)
		return s.said("gate approve is pending", "explain", "module/shop", "-n", "clusters")
	})
	s.says("nodes/first", "status", "-n", "data")
	s.cordon()
	s.patch("ConfigMap", "shop", "prices", `{"data": {"CURRENCY": "CHF"}}`)
	s.says("position", "explain", "deployment/web", "-n", "shop")
	return s
}

const usesPrices = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: shop, annotations: {spillway.dev/update-on-config-change: "true"}}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: prices}}]}]}
`

const zoneManifest = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %s, namespace: mimir, labels: {rollout-group: %s}}
spec:
  replicas: 3
  serviceName: %[2]s
  updateStrategy: {type: OnDelete}
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: %[3]q}]}
`

// group applies the zones of a group.
func (s *story) group(name, image string) {
	s.t.Helper()
	for _, zone := range []string{"a", "b", "c"} {
		s.apply(fmt.Sprintf(zoneManifest, name+"-zone-"+zone, name, image))
	}
}

func (s *story) until(check func(context.Context) error) {
	s.t.Helper()
	testenv.Eventually(s.t, check)
}

// apply applies manifests; a kind may not be served yet.
func (s *story) apply(manifests string) {
	s.t.Helper()
	for manifest := range strings.SplitSeq(manifests, "\n---\n") {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(manifest), &content); err != nil {
			s.t.Fatal(err)
		}
		s.until(func(ctx context.Context) error {
			return s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object(content)), client.FieldOwner("user"), client.ForceOwnership)
		})
	}
}

// run runs a command of this program, as a process does, until the context ends.
func run(ctx context.Context, args ...string) (*testenv.Buffer, <-chan int) {
	out, ended := &testenv.Buffer{}, make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, command.Environment{
			Args: append([]string{"spillway"}, args...), Out: out, Err: out, Lookup: os.LookupEnv, Now: time.Now,
		})
	}()
	return out, ended
}

// spillway is what a command prints that a person types.
func (s *story) spillway(args ...string) string {
	out, ended := run(s.t.Context(), args...)
	<-ended
	return out.String()
}

func (s *story) said(text string, args ...string) error {
	if out := s.spillway(args...); !strings.Contains(out, text) {
		return fmt.Errorf("%v does not say %q: %s", args, text, out)
	}
	return nil
}

// says waits until a command says something.
func (s *story) says(text string, args ...string) {
	s.t.Helper()
	s.until(func(context.Context) error { return s.said(text, args...) })
}

// manage runs the manager to the end of the test.
func (s *story) manage() {
	ctx, stop := context.WithCancel(s.t.Context())
	out, ended := run(ctx, "manager", "--rings=config,zones,plans,fleet", "--max-rolling=2",
		"--allow-cluster-addresses=127.0.0.0/8", "--leader-elect-namespace=spillway-system", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	s.t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 || s.t.Failed() {
			s.t.Logf("the manager has ended with %d: %s", code, out)
		}
	})
}

var printed = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\w+`)

// open serves the pages of a user to the end of the test, and returns their address.
func (s *story) open(user string, more ...string) (address string) {
	s.t.Helper()
	args := append([]string{"dashboard", "-A", "--port", "0"}, more...)
	if user != "" {
		args = append(args, "--as", user)
	}
	ctx, stop := context.WithCancel(s.t.Context())
	out, ended := run(ctx, args...)
	s.t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			s.t.Errorf("exit code %d: %s", code, out)
		}
	})
	s.until(func(context.Context) error {
		if address = printed.FindString(out.String()); address == "" {
			return errors.New(out.String())
		}
		return nil
	})
	return address
}

// join makes the cluster itself known to the fleet, by a name.
func (s *story) join(name string) {
	s.t.Helper()
	kubeconfig, err := clientcmd.LoadFromFile(testenv.Shared().Kubeconfig())
	if err == nil {
		err = errors.Join(clientcmd.ResolveLocalPaths(kubeconfig), clientcmdapi.FlattenConfig(kubeconfig))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	labels := map[string]string{"spillway.dev/cluster": "true", "canary": fmt.Sprint(name == "canary")}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name + "-kubeconfig", Labels: labels}, Data: map[string][]byte{"value": raw}}
	if err := s.client.Create(s.t.Context(), secret); err != nil {
		s.t.Fatal(err)
	}
}

// report plays the clusters: each carries out what it is assigned.
func (s *story) report(ctx context.Context) {
	s.t.Helper()
	list := &v1alpha1.AssemblageList{}
	if err := s.client.List(ctx, list, client.InNamespace("clusters")); err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		a := &list.Items[i]
		a.Status.ObservedGeneration, a.Status.Syncs = a.Generation, nil
		for _, sync := range a.Spec.Syncs {
			now := metav1.NowMicro()
			a.Status.Syncs = append(a.Status.Syncs, v1alpha1.SyncStatus{
				Name: sync.Name, Revision: sync.Revision, AssignedAt: sync.AssignedAt, State: v1alpha1.StateSucceeded,
				LastTransitionTime: &now, LastSucceededRevision: sync.Revision,
			})
		}
		if err := s.client.Status().Update(ctx, a); err != nil && !apierrors.IsConflict(err) {
			s.t.Fatal(err)
		}
	}
}

// cordon lets no further Pod start.
func (s *story) cordon() {
	s.t.Helper()
	nodes := &corev1.NodeList{}
	if err := s.client.List(s.t.Context(), nodes); err != nil {
		s.t.Fatal(err)
	}
	for i := range nodes.Items {
		s.patch("Node", "", nodes.Items[i].Name, `{"spec": {"unschedulable": true}}`)
	}
}

// patch changes an object of the core.
func (s *story) patch(kind, namespace, name, patch string) {
	s.t.Helper()
	obj := object(map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}})
	if err := s.client.Patch(s.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("user")); err != nil {
		s.t.Fatal(err)
	}
}
