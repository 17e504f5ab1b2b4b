package plans_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/authoring"
	"github.com/spillway-dev/spillway/internal/packages/origin"
)

// chart installs the package of the chart in testdata, with texts of its files replaced.
func (c *cluster) chart(replaced ...string) {
	c.t.Helper()
	dir := filepath.Join(c.t.TempDir(), "shop")
	if err := os.CopyFS(dir, os.DirFS("testdata/chart")); err != nil {
		c.t.Fatal(err)
	}
	replaced = append(replaced, "crds/orders.yaml", "chart.spillway.test", c.group()) // which is not a template
	for i := 0; i < len(replaced); i += 3 {
		at := filepath.Join(dir, replaced[i])
		raw, err := os.ReadFile(at)
		if err == nil {
			err = os.WriteFile(at, []byte(replace(string(raw), replaced[i+1], replaced[i+2])), 0o600)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	archive, err := (&origin.Origin{}).Chart(c.t.Context(), dir)
	if err != nil {
		c.t.Fatal(err)
	}
	to := filepath.Join(c.t.TempDir(), "package")
	if _, err := authoring.NewFromChart(to, "", archive, false); err != nil {
		c.t.Fatal(err)
	}
	p, err := packages.Load(to)
	if err != nil {
		c.t.Fatal(err)
	}
	version, err := p.VersionObject()
	if err != nil {
		c.t.Fatal(err)
	}
	version.Namespace = c.namespace
	if err := c.client.Create(c.t.Context(), version); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		for _, obj := range []client.Object{definitionOf("orders." + c.group()), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: c.namespace + "-web"}}} {
			_ = c.client.Delete(context.WithoutCancel(c.t.Context()), obj)
		}
	})
}

// TestAChartIsInstalledUpgradedAndUninstalled as Helm does it: values from parameters, a
// dependency, a kind, hooks in the order of their weights which run again in each upgrade, and
// what a chart keeps.
func TestAChartIsInstalledUpgradedAndUninstalled(t *testing.T) {
	c := newCluster(t)
	c.chart()
	c.chart("Chart.yaml", "1.0.0+1", "1.1.0", "templates/config.yaml", "sum:", "total:", "values.yaml", "enabled: true", "enabled: false")
	c.manage()
	c.instance("web", "shop-2.4.0-1.0.0", "image", "{tag: '2'}", "debug", "false", "replicas", "1")
	c.rests("web", "deploy Complete")
	want := map[string]string{
		"image": "registry.example.com/shop:2", "sum": "2", "debug": "off", "motd": `it's "open" & cheap`, "ports": "80,443",
		"password": "none", "seen": "0", "file": "welcome", "reason": "install",
	}
	if got := c.data("web-shop"); !maps.Equal(got, want) {
		t.Errorf("the chart makes %v, want %v", got, want)
	}
	if got := c.data("web-db"); got["size"] != "1Gi" {
		t.Errorf("the dependency makes %v", got)
	}
	first, second := c.completed("web-first"), c.completed("web-second")
	if second.CreationTimestamp.Time.Before(first.Status.CompletionTime.Time) {
		t.Error("the second hook has begun before the first had ended")
	}
	if err := c.get(&corev1.Pod{}, "web-test"); err == nil {
		t.Error("the tests of the chart run")
	}

	c.change("web", set("debug", "true"))
	c.rests("web", "deploy Complete, update Complete")
	if got := c.data("web-shop"); got["debug"] != "on" || got["reason"] != "upgrade" {
		t.Errorf("the chart makes %v", got)
	}
	again := c.completed("web-first")
	if again.UID == first.UID {
		t.Error("the hook has not run again")
	}
	c.change("web", use("shop-2.4.0-1.1.0"))
	c.rests("web", "deploy Complete, update Complete, upgrade Complete")
	if got := c.data("web-shop"); got["total"] != "2" || got["sum"] != "" {
		t.Errorf("the chart makes %v", got)
	}
	c.gone(&corev1.ConfigMap{}, "web-db")
	if c.completed("web-first").UID == again.UID {
		t.Error("the hook has not run again")
	}

	c.remove(&v1beta1.Instance{}, "web")
	c.gone(&v1beta1.Instance{}, "web")
	c.gone(&corev1.ConfigMap{}, "web-shop")
	c.gone(&rbacv1.ClusterRole{}, c.namespace+"-web")
	for _, kept := range []string{"web-kept", "web-removal"} {
		if err := c.get(&corev1.ConfigMap{}, kept); err != nil {
			t.Error(err)
		}
	}
	if err := c.client.Get(t.Context(), types.NamespacedName{Name: "orders." + c.group()}, definitionOf("")); err != nil {
		t.Error(err)
	}
}

// completed is a Job that is complete.
func (c *cluster) completed(name string) *batchv1.Job {
	c.t.Helper()
	job := &batchv1.Job{}
	if err := c.get(job, name); err != nil || job.Status.CompletionTime == nil {
		c.t.Fatalf("Job %s is not complete: %v", name, err)
	}
	return job
}

// TestAChartIsRenderedWithinLimits: what would be another value each time, or never ends, fails
// the plan, as in templates.
func TestAChartIsRenderedWithinLimits(t *testing.T) {
	for text, why := range map[string]string{
		"{{ randAlphaNum 8 }}":                  `function "randAlphaNum" is refused: its result is different each time`,
		"{{ now }}":                             `function "now" is refused: its result depends on the time`,
		"{{ range until 2000000000 }}{{ end }}": "it needs more than 64 MiB of memory",
		`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ print $d }}`: "it is nested too deeply, or contains itself",
	} {
		t.Run(text, func(t *testing.T) {
			c := newCluster(t)
			c.chart("templates/config.yaml", `{{ .Values.motd | quote }}`, text)
			c.manage()
			c.instance("web", "shop-2.4.0-1.0.0")
			c.rests("web", "deploy Failed")
			if got := c.now("web").Status.WaitingFor; !strings.Contains(got, why) {
				t.Errorf("it says %s, want %s", got, why)
			}
		})
	}
}
