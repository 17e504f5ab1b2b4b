package simulate_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// underPolicy are the objects of the scenario of stages, under a policy with another spec.
func underPolicy(t *testing.T, spec string) []*unstructured.Unstructured {
	t.Helper()
	base := objects(read(t, "policy-stages", "base.yaml"))
	i := slices.IndexFunc(base, func(u *unstructured.Unstructured) bool { return u.GetKind() == "ConfigPolicy" })
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	base[i].Object["spec"] = fields
	return base
}

// reasonsOf are the workloads that are stuck, with why.
func reasonsOf(stuck []record.Wait) string {
	texts := make([]string, 0, len(stuck))
	for i := range stuck {
		texts = append(texts, strings.TrimPrefix(stuck[i].Object, "deployment/")+" "+string(stuck[i].Reason))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// What fails in a stage stops there, goes back or not, as the policy says.
func TestAPolicyIsPlayed(t *testing.T) {
	t.Parallel()
	const first = `stages: [{name: first, workloads: 1}, {name: rest}]`
	for spec, want := range map[string]struct{ rolls, stuck string }{
		"{" + first + "}": {
			"app1", "app1 Failed, app2 ConfigFailed, app3 ConfigFailed, app4 ConfigFailed, app5 ConfigFailed",
		},
		"{maxUnavailable: 2}": {
			"app1 app2 app3 app4 app5", "",
		},
		"{onFailure: Continue, " + first + "}": {
			"app1 app2 app3 app4 app5", "app1 Failed",
		},
		"{maxFailures: 1, maxUnavailable: 1}": {
			"app1 app2 app3 app4 app5", "app1 Failed",
		},
		"{pinConfig: true, onFailure: Rollback, " + first + "}": {
			"app1 app1", "app1 ConfigRolledBack, app2 ConfigFailed, app3 ConfigFailed, app4 ConfigFailed, app5 ConfigFailed",
		},
		"{pause: {reason: lunch}}": {
			"", "app1 Paused, app2 Paused, app3 Paused, app4 Paused, app5 Paused",
		},
	} {
		o := benchOptions()
		o.Readiness.Of = map[string]time.Duration{}
		if !strings.HasPrefix(spec, "{maxUnavailable") {
			o.Readiness.Of["deployment/app1"] = world.Never
		}
		if strings.Contains(spec, "pinConfig") {
			o.Config.PinNamespaces = pin.In(o.Namespace)
		}
		r, err := simulate.Run(t.Context(), underPolicy(t, spec), objects(read(t, "policy-stages", "change.yaml")), o)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		var rolls []string
		for _, s := range r.Steps {
			if s.Ring != record.RingConfig {
				t.Errorf("%s: %s", spec, line(s))
			}
			rolls = append(rolls, strings.TrimPrefix(s.Object, "deployment/"))
		}
		if got := strings.Join(rolls, " "); got != want.rolls || reasonsOf(r.Stuck) != want.stuck {
			t.Errorf("%s:\n%s\n%s\nwant\n%s\n%s", spec, got, reasonsOf(r.Stuck), want.rolls, want.stuck)
		}
	}
}

// inNamespaces are a Secret and a Deployment of two namespaces, of which a policy has dev first; and the Secrets with
// another value.
func inNamespaces(t *testing.T, isKnown bool) (base, change []*unstructured.Unstructured) {
	t.Helper()
	var before, after strings.Builder
	for _, namespace := range []string{"dev", "shop"} {
		secret := func(value string) string {
			return "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: " + namespace + "}\nstringData: {p: " + value + "}\n---\n"
		}
		after.WriteString(secret("new"))
		before.WriteString(secret("old") + "apiVersion: apps/v1\nkind: Deployment\n" +
			`metadata: {name: app, namespace: ` + namespace + `, annotations: {spillway.dev/update-on-config-change: "true"}}` +
			"\nspec: {replicas: 1, selector: {matchLabels: {app: app}}, template: {metadata: {labels: {app: app}}, spec: {containers: [{name: c, image: i, envFrom: [{secretRef: {name: db}}]}]}}}\n---\n")
		if isKnown {
			before.WriteString("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + ", labels: {env: " + namespace + "}}\n---\n")
		}
	}
	before.WriteString("apiVersion: spillway.dev/v1alpha1\nkind: ClusterConfigPolicy\nmetadata: {name: dev-first}\n" +
		"spec: {objects: [{kind: Secret, name: db}], namespaceStages: [{name: dev, namespaceSelector: {matchLabels: {env: dev}}}]}\n")
	return objects(readAt(t, before.String(), benchOptions().Now)), objects(readAt(t, after.String(), benchOptions().Now))
}

// Stages of namespaces are played where the namespaces are known; where they are not, each is for itself.
func TestNamespacesFollowOneAnother(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		isKnown, works bool
		rolls, stuck   string
	}{
		"it works":      {true, true, "dev shop", ""},
		"it fails":      {true, false, "dev", "app ConfigFailed, app Failed"},
		"no namespaces": {false, false, "dev shop", "app Failed, app Failed"},
	} {
		o := benchOptions()
		o.Readiness.Of = map[string]time.Duration{}
		if !test.works {
			o.Readiness.Of["deployment/app"] = world.Never
		}
		base, change := inNamespaces(t, test.isKnown)
		r, err := simulate.Run(t.Context(), base, change, o)
		if err != nil {
			t.Fatal(err)
		}
		var rolls []string
		for _, s := range r.Steps {
			rolls = append(rolls, s.Namespace)
		}
		if got := strings.Join(rolls, " "); got != test.rolls || reasonsOf(r.Stuck) != test.stuck {
			t.Errorf("%s: %q, stuck %q", name, got, reasonsOf(r.Stuck))
		}
	}
}

// What is said of a revision counts for that one alone.
func TestARevisionIsNeverReady(t *testing.T) {
	t.Parallel()
	play := func(key string) (steps, unmet []string) {
		o := benchOptions()
		o.Readiness.Set(key, world.Never)
		spec := "{maxUnavailable: 1, stages: [{name: first, workloads: 1}, {name: rest}]}"
		r, err := simulate.Run(t.Context(), underPolicy(t, spec), objects(read(t, "policy-stages", "change.yaml")), o)
		if err != nil {
			t.Fatal(err)
		}
		return lines(r.Steps), r.Unmet
	}
	bad, _ := play("deployment/app1@new")
	former, next, _ := strings.Cut(regexp.MustCompile("[0-9a-f]{7} → [0-9a-f]{7}").FindString(strings.Join(bad, "")), " → ")
	if len(bad) != 1 || former == "" {
		t.Fatalf("the release goes on after a canary that is not ready with the new config: %q", bad)
	}
	for _, c := range []struct {
		key   string
		steps int
		unmet []string
	}{
		{"deployment/app1@" + next, 1, nil},
		{"deployment/app1@" + former, 5, []string{"deployment/app1@" + former}}, // it ran before, and is not made again
		{"deployment/app5@new", 5, nil},
		{"deployment/app1@v9", 5, []string{"deployment/app1@v9"}},
		{"deployment/app9@new", 5, []string{"deployment/app9@new"}},
	} {
		steps, unmet := play(c.key)
		if len(steps) != c.steps || !slices.Equal(unmet, c.unmet) {
			t.Errorf("%s: %d steps, unmet %q: %q", c.key, len(steps), unmet, steps)
		}
	}
}

// A stage soaks from when its last Pod is ready, not from when it was rolled.
func TestAStageSoaks(t *testing.T) {
	t.Parallel()
	o := benchOptions() // two Pods, one after the other, each in half a minute
	r, err := simulate.Run(t.Context(), underPolicy(t, "{soak: 10m, stages: [{name: first, workloads: 1}, {name: rest}]}"), objects(read(t, "policy-stages", "change.yaml")), o)
	if err != nil || len(r.Steps) != 5 {
		t.Fatal(lines(r.Steps), err)
	}
	if soaked := r.Steps[1].At - r.Steps[0].At; time.Duration(soaked) != 11*time.Minute {
		t.Errorf("the second stage begins %s after the first", soaked)
	}
}

// The policies of a cluster, and what is recorded to have failed, count in what is simulated upon its present state. A user who must
// not read some gets the others.
func TestPoliciesArePresent(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	installKinds(t, c)
	namespace := testenv.Namespace(t)
	for _, policy := range []string{
		"kind: ConfigPolicy\nmetadata: {name: careful, namespace: " + namespace + "}",
		"kind: ConfigRollout\nmetadata: {name: secret-db, namespace: " + namespace + "}\nobject: {kind: Secret, name: db}", "kind: ClusterConfigPolicy\nmetadata: {name: " + namespace + "}\nspec: {namespaces: [nowhere]}",
	} {
		testenv.ApplyManifest(t, c, "apiVersion: spillway.dev/v1alpha1\n"+policy)
	}
	user := "user-" + namespace
	testenv.Grant(t, c, namespace, user, []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}}})
	kinds, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(testenv.Shared().Config())
	config.Impersonate.UserName = user
	restricted, err := client.New(config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	for reader, want := range map[client.Reader]string{c: "ConfigRollout secret-db, ConfigPolicy careful, ClusterConfigPolicy " + namespace, restricted: "ConfigRollout secret-db, ConfigPolicy careful"} {
		present, err := simulate.Present(t.Context(), reader, namespace)
		if err != nil {
			t.Error(err)
		}
		var found []string
		for _, obj := range present {
			gvk, err := c.GroupVersionKindFor(obj)
			if (strings.HasSuffix(gvk.Kind, "ConfigPolicy") || gvk.Kind == "ConfigRollout") && (obj.GetNamespace() == namespace || obj.GetName() == namespace) && err == nil {
				found = append(found, gvk.Kind+" "+obj.GetName())
			}
		}
		slices.Sort(found)
		slices.Reverse(found)
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
}
