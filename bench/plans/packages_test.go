package plans_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/plans"
)

// twenty are templates of twenty objects. NAME is that of the Instance.
func twenty(withPods bool) []string {
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-%d}, data: {a: b}}", i))
	}
	for i := range 5 {
		all = append(all, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: NAME-%d}, stringData: {a: b}}", i))
	}
	for i := range 4 {
		all = append(all, fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: NAME-%d}, spec: {clusterIP: None, selector: {app: NAME}, ports: [{port: 80}]}}", i))
	}
	if !withPods {
		return append(all, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME}}")
	}
	return append(all, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME}, spec: {replicas: 2, selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: {containers: [{name: c, image: x}]}}}}")
}

// packed writes a package of templates.
func packed(t *testing.T, name string, templates []string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Join(dir, "templates"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"operator.yaml": "name: " + name + "\noperatorVersion: 0.1.0\ntasks: [{name: all, kind: Apply, spec: {resources: [all.yaml]}}]\n" +
			"plans: {deploy: {phases: [{name: main, steps: [{name: all, tasks: [all]}]}]}}\n",
		"templates/all.yaml": strings.ReplaceAll(strings.Join(templates, "\n---\n"), "NAME", "{{ .Name }}"),
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// install runs the command, as a person does.
func (w *world) install(dir, name string) time.Duration {
	w.t.Helper()
	out, start := &testenv.Buffer{}, time.Now()
	code := cli.Run(w.t.Context(), command.Environment{
		Args: []string{"spillway", "package", "install", dir, name, "--wait", "-n", w.namespace, "--kubeconfig", testenv.Shared().Kubeconfig()},
		Out:  out, Err: out, Now: time.Now, Lookup: func(string) (string, bool) { return "", false },
	})
	if code != 0 {
		w.t.Fatal(out.String())
	}
	return time.Since(start)
}

// bare applies the same objects one after another, and waits for their Pods.
func (w *world) bare(templates []string, name string) time.Duration {
	w.t.Helper()
	start := time.Now()
	for _, template := range templates {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(template, "NAME", name)), &u.Object); err != nil {
			w.t.Fatal(err)
		}
		u.SetNamespace(w.namespace)
		if err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("bare"), client.ForceOwnership); err != nil {
			w.t.Fatal(err)
		}
		if u.GetKind() == "Deployment" {
			testenv.Eventually(w.t, func(ctx context.Context) error {
				d := &appsv1.Deployment{}
				if err := w.client.Get(ctx, client.ObjectKeyFromObject(u), d); err != nil || d.Status.AvailableReplicas < 2 {
					return fmt.Errorf("%d Pods are available, %w", d.Status.AvailableReplicas, err)
				}
				return nil
			})
		}
	}
	return time.Since(start)
}

// TestInstallBesideApply installs a package of twenty objects and waits, and applies the same
// objects without it, in turns.
func TestInstallBesideApply(t *testing.T) {
	for _, kind := range []struct {
		name     string
		withPods bool
	}{{"settings", false}, {"pods", true}} {
		t.Run(kind.name, func(t *testing.T) {
			w, templates := newWorld(t, "version: \"1\"\nplans: {deploy: {}}"), twenty(kind.withPods)
			dir := packed(t, kind.name, templates)
			w.manage()
			w.install(dir, "warm")
			w.bare(templates, "warmer")
			w.counted.Reset()
			var installed, applied []time.Duration
			for n := range installRounds {
				installed = append(installed, w.install(dir, fmt.Sprintf("web-%d", n)))
				applied = append(applied, w.bare(templates, fmt.Sprintf("bare-%d", n)))
			}
			applies, reads := 0, 0
			for _, r := range w.counted.Requests() {
				switch r.Verb {
				case "patch":
					applies++
				case "get", "list":
					reads++
				}
			}
			statuses := w.calls()["update instances/status"]
			i, a := median(installed), median(applied)
			fmt.Printf("| install --wait of 20 objects (%s), beside bare applies of the same | %s, %s: ratio %.2f (at most 1.5) |\n", kind.name, i.Round(time.Millisecond), a.Round(time.Millisecond), i.Seconds()/a.Seconds())
			fmt.Printf("| ... API calls of the manager for each | %d applies, %.1f writes of the status, %.1f reads |\n", applies/installRounds, float64(statuses)/installRounds, float64(reads)/installRounds)
			if applies != 20*installRounds || statuses > 2*installRounds {
				t.Errorf("%d applies and %d writes of the status", applies, statuses)
			}
			if most := 30 * installRounds; !kind.withPods && reads > most { // 20 objects, the content that is kept, and the OperatorVersion in each pass
				t.Errorf("%d reads, want at most %d", reads, most)
			}
		})
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// once is a package of two steps, each of which applies an object.
const once = `
version: "1"
tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}, {name: b, kind: Apply, spec: {resources: [b.yaml]}}]
templates:
  a.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}-a'}}"
  b.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}-b'}}"
plans: {deploy: {phases: [{name: main, strategy: serial, steps: [{name: a, tasks: [a]}, {name: b, tasks: [b]}]}]}}
`

// replica runs one of several managers, of which one leads.
func (w *world) replica(inj *fault.Injector) (stop func()) {
	w.t.Helper()
	return testenv.Managed(w.t, inj, func(ctx context.Context, _ logr.Logger) error {
		return manager.Run(ctx, inj.Wrap(testenv.Shared().Config()), manager.Options{
			Rings: []string{manager.RingPlans}, Namespaces: []string{w.namespace}, Plans: plans.Options{Now: time.Now},
			MetricsAddress: "0", ProbeAddress: "0", Version: "bench", Log: logr.Discard(),
			LeaderElect: true, LeaseName: manager.LeaseName, LeaseNamespace: w.namespace,
		})
	})
}

// TestLeadersAreKilled installs many Instances at the same time with two managers, and kills
// the leader again and again, in the middle of its work. Each plan runs once.
func TestLeadersAreKilled(t *testing.T) {
	w := newWorld(t, once)
	w.instances("web", killedInstances)
	start, kills := time.Now(), 0
	next := func() *fault.Injector {
		inj := fault.New()
		inj.StopAt(killedInstances*5/(leadersKilled+2), fault.After) // each needs five writes
		return inj
	}
	replicas := []*fault.Injector{next(), next()}
	stops := []func(){w.replica(replicas[0]), w.replica(replicas[1])}
	for kills < leadersKilled {
		at := 0
		select {
		case <-replicas[0].Stopped():
		case <-replicas[1].Stopped():
			at = 1
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		stops[at]()
		if kills++; kills == leadersKilled {
			replicas[1-at].StopAt(1<<30, fault.After)
		}
		replicas[at] = fault.New()
		if kills < leadersKilled {
			replicas[at] = next()
		}
		stops[at] = w.replica(replicas[at])
	}
	all := w.until(killedInstances, isComplete)
	wrong := 0
	for i := range all {
		wrong += w.wrong(&all[i])
	}
	fmt.Printf("| %d Instances installed at the same time, two managers, the leader killed %d times: plans that ran other than once | %d (0) |\n", killedInstances, kills, wrong)
	fmt.Printf("| ... from the first look to the last end | %.1f s |\n", time.Since(start).Seconds())
}

// wrong is 0 if the plan of an Instance ran once, and all that it applied is of that run.
func (w *world) wrong(i *v1beta1.Instance) int {
	w.t.Helper()
	if len(i.Status.History) != 1 || i.Status.History[0].Plan != v1beta1.DeployPlan || i.Status.History[0].Result != v1beta1.ResultComplete {
		w.t.Errorf("%s: the history is %+v", i.Name, i.Status.History)
		return 1
	}
	for _, suffix := range []string{"-a", "-b"} {
		cm := &corev1.ConfigMap{}
		if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: i.Name + suffix}, cm); err != nil {
			w.t.Errorf("%s: %v", i.Name, err)
			return 1
		}
		if got := cm.Annotations["kudo.dev/last-plan-execution-uid"]; got != string(i.Status.History[0].UID) {
			w.t.Errorf("%s was applied by the execution %q", cm.Name, got)
			return 1
		}
	}
	return 0
}
