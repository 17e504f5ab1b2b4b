package fleet_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/fleet"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.MainFleet(m, 0) }

// newClient is a client of a cluster with the kinds of a hub, which are those of other clusters, too.
func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	testenv.InstallKinds(t, c, generated+"fleet/fleet*.yaml", generated+"fleet/spillway*.yaml", generated+"gates/spillway*.yaml", generated+"assemblage/fleet*.yaml")
	return c
}

const generated = "../../../charts/spillway/generated/"

// What Flux applies becomes a module that the API server accepts, with what has no place in it said beside it.
func TestImport(t *testing.T) {
	c := newClient(t)
	head := metav1.ObjectMeta{Namespace: testenv.Namespace(t), Name: "shop"}
	source := &sourcev1.GitRepository{ObjectMeta: head}
	source.Spec = sourcev1.GitRepositorySpec{URL: "https://git.test/shop", Reference: &sourcev1.GitRepositoryRef{Tag: "v1"}, Interval: metav1.Duration{Duration: time.Minute}}
	k := &kustomizev1.Kustomization{ObjectMeta: head}
	k.Spec = kustomizev1.KustomizationSpec{
		Interval: metav1.Duration{Duration: time.Minute}, SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "shop"},
		Suspend: true, Decryption: &kustomizev1.Decryption{Provider: "sops"}, PostBuild: &kustomizev1.PostBuild{Substitute: map[string]string{"price": "$(10)"}},
	}
	for _, o := range []client.Object{source, k} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	out, said := runImport(t, "shop", "-n", head.Namespace, "--select", "env=prod")
	if !strings.HasPrefix(said, "note: kustomization/shop: spec.suspend: ") || !strings.Contains(said, "kubectl delete kustomization/shop -n "+head.Namespace) {
		t.Error(said)
	}
	module := &v1alpha1.Module{}
	if err := yaml.UnmarshalStrict([]byte(out), module); err != nil {
		t.Fatal(err, out)
	}
	if err := c.Create(t.Context(), module); err != nil {
		t.Fatal(err)
	}
	kustomize := module.Spec.Template.Spec.Sync.Package.Kustomize
	if string(kustomize.Spec.Raw) != `{"decryption":{"provider":"sops"}}` || kustomize.Substitute["price"] != "$$(10)" || module.Spec.Selector.MatchLabels["env"] != "prod" {
		t.Errorf("%s", out)
	}
	if _, said := runImport(t, "absent", "-n", head.Namespace); !strings.Contains(said, "kustomization/absent not found") {
		t.Error(said)
	}
}

// A chart is found by whatever refers to it, and what cannot become a module is said with its field.
func TestImportOfCharts(t *testing.T) {
	w := newRunning(t)
	w.create(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts}
spec: {url: "oci://registry.test/charts", type: oci}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: chart}
spec: {chart: shop, version: 1.0.0, interval: 10m, sourceRef: {kind: HelmRepository, name: charts}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: artifact}
spec: {url: "oci://registry.test/shop", interval: 10m, ref: {tag: 1.0.0}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: by-chart}
spec: {interval: 10m, chartRef: {kind: HelmChart, name: chart}, suspend: true}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: by-artifact}
spec: {interval: 10m, chartRef: {kind: OCIRepository, name: artifact}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: by-range}
spec: {interval: 10m, chart: {spec: {chart: shop, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: by-nothing}
spec: {interval: 10m, chartRef: {kind: HelmChart, name: absent}}
`)
	for name, want := range map[string]string{
		"by-chart":    `chart: shop spec: provider: generic url: oci://registry.test/charts version: 1.0.0 wait: true note: helmrelease/by-chart: spec.suspend: it is suspended`,
		"by-artifact": `url: oci://registry.test/shop version: tag: 1.0.0 wait: true to take over`,
		"by-range":    "helmrelease/by-range: status.history: the chart was not installed yet, so it is not known at which version it is",
		"by-nothing":  "helmrelease/by-nothing: helmchart/absent not found",
		"none":        "helmrelease/none not found",
	} {
		out, said := runImport(t, name, "--release", "-n", w.namespace)
		if got := strings.Join(strings.Fields(out[max(0, strings.Index(out, "        source:")):]+said), " "); !strings.Contains(got, want) || strings.Contains(said, "helmchart/by") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// runImport returns what the command prints, and what it says beside it or as its error.
func runImport(t *testing.T, args ...string) (out, said string) {
	t.Helper()
	cmd := fleet.New(command.Environment{Now: time.Now, Lookup: func(string) (string, bool) { return "", false }})
	stdout, stderr := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetArgs(append([]string{"import", "--kubeconfig", testenv.Shared().Kubeconfig()}, args...))
	cmd.SilenceUsage = true
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return "", err.Error()
	}
	return stdout.String(), stderr.String()
}
