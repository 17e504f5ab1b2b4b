package cli_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// late is a Deployment with an annotation that lint refuses.
const late = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {spillway.dev/update-on-config-change: "true", spillway.dev/coalesce-window: soon}},
spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: x}]}}}}`

// What an upgrade would change is said, and what it would break is an error.
func TestAnUpgrade(t *testing.T) {
	c := testenv.Client(t)
	watched := testenv.Namespace(t)
	system := watched + "-system"
	says := func(code int, texts ...string) {
		t.Helper()
		got, said := runCommand(t, "check", "--upgrade", "-n", system)
		for _, text := range texts {
			if !strings.Contains(said, text) {
				t.Errorf("it does not say %q:\n%s", text, said)
			}
		}
		if got != code {
			t.Errorf("exit code %d:\n%s", got, said)
		}
	}
	says(1, "no manager in namespace "+system)
	install := func(args ...string) {
		t.Helper()
		if code, said := runCommand(t, append([]string{"install", "-n", system, "--watch-namespaces=" + watched, "--image=spillway:before"}, args...)...); code != 0 {
			t.Fatal(said)
		}
	}
	install("--rings=config", "--package-kinds=false")
	// Whether lint has objects to look at depends on the cluster-wide ones of other tests.
	says(0, "manager "+system+"/spillway\n", "✓ image spillway:before is installed; this is version ", "✓ no permission of the manager changes",
		"✓ all flags of the manager are still accepted", "lint ")

	// A version before with other permissions and flags.
	role := &rbacv1.Role{}
	role.Namespace, role.Name = watched, "spillway"
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		t.Fatal(err)
	}
	role.Rules = append(role.Rules[1:], rbacv1.PolicyRule{APIGroups: []string{"example.test"}, Resources: []string{"things"}, Verbs: []string{"get"}})
	if err := c.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	says(0, "! the manager gets ", "✓ the manager loses 1 permission: get things.example.test")

	web := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(late), &web.Object); err != nil {
		t.Fatal(err)
	}
	web.SetNamespace(watched)
	testenv.Apply(t, c, web)
	if code, said := runCommand(t, "install", "-n", system, "--watch-namespaces="+watched, "--image=spillway:before", "--rings=config",
		"--kubeconfig="+testenv.Shared().Kubeconfig(), "--", "--gone", "--max-rolling=many"); code != 0 {
		t.Fatal(said)
	}
	says(1, "✗ flag --gone is gone, and the manager would not start with it", "✗ flag --max-rolling=many is refused", "(SPW101)", "something must be fixed")
	if code, said := runCommand(t, "status", "-n", watched); code != 1 || !strings.Contains(said, `error: the installed manager runs with --max-rolling=many: "many" is not a whole number; use one such as `) {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if code, said := runCommand(t, "uninstall", "-n", system); code != 0 { // its flags count for who lists all namespaces
		t.Error(said)
	}
}
