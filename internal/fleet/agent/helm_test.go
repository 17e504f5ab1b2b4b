package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// chart is a chart in a folder, with a ConfigMap that says its version and the value "region".
func chart(folder, version, template string) map[string]string {
	return map[string]string{
		folder + "/Chart.yaml":               "apiVersion: v2\nname: shop\nversion: " + version + "\n",
		folder + "/templates/configmap.yaml": template,
	}
}

const (
	goodTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {version: '{{ .Chart.Version }}', region: '{{ .Values.region }}', replicas: '{{ .Values.replicas }}'}\n"
	badTemplate  = "{{ fail \"it is broken\" }}\n"
)

// release is a sync of a chart of a Helm repository.
func (w *world) release(version, more string) v1alpha1.NamedSync {
	w.Helper()
	s := v1alpha1.NamedSync{Assignment: v1alpha1.Assignment{Name: "shop", Revision: "shop-" + version}}
	s.Source = &v1alpha1.Source{Helm: &v1alpha1.HelmSource{URL: w.url, Chart: "shop", Version: version}}
	w.adds(&s, more)
	return s
}

func (w *world) adds(s *v1alpha1.NamedSync, more string) {
	w.Helper()
	if err := yaml.Unmarshal([]byte(more), s); err != nil {
		w.Fatal(err)
	}
}

const values = "bindings: [{name: region, value: eu}]\npackage: {helm: {values: {region: '$(region)-1', replicas: 2}, spec: {releaseName: shop}}}"

// publishCharts has a Helm repository have three versions, of which the last is broken.
func (w *world) publishCharts() {
	w.Helper()
	for version, template := range map[string]string{"1.0.0": goodTemplate, "1.1.0": goodTemplate, "2.0.0": badTemplate} {
		testenv.Publish(w, w.url, "shop:"+version, chart("shop", version, template))
	}
}

func (w *world) says(version string) {
	w.Helper()
	w.data("app", map[string]string{"version": version, "region": "eu-1", "replicas": "2"})
}

// The real helm-controller installs a chart with values that are bound, upgrades it, fails to, returns, and
// uninstalls it.
func TestAChartFromItsBeginningToItsEnd(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publishCharts()
	w.assign("c1", w.release("1.0.0", values))
	if s := w.becomes("c1", "shop", "shop-1.0.0", v1alpha1.StateSucceeded, "applied 1.0.0"); s.Resolved != "1.0.0" {
		t.Errorf("%+v", s)
	}
	w.says("1.0.0")
	w.assign("c1", w.release("1.1.0", values))
	w.becomes("c1", "shop", "shop-1.1.0", v1alpha1.StateSucceeded, "applied 1.1.0")
	w.says("1.1.0")
	w.assign("c1", w.release("2.0.0", values))
	w.becomes("c1", "shop", "shop-2.0.0", v1alpha1.StateFailed, "it is broken")
	w.says("1.1.0")
	w.assign("c1", w.release("1.1.0", values))
	w.becomes("c1", "shop", "shop-1.1.0", v1alpha1.StateSucceeded, "applied 1.1.0")
	w.hasCharts(1, 1, 1)
	w.remove(&v1alpha1.Assemblage{}, "c1")
	w.gone(&v1alpha1.Assemblage{}, "c1")
	w.data("app", nil)
	w.hasCharts(0, 0, 0)
}

// An upgrade that Flux has rolled back is no success, though the release is deployed.
func TestAnUpgradeThatIsRolledBackFails(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publishCharts()
	testenv.Publish(w, w.url, "shop:3.0.0", chart("shop", "3.0.0", goodTemplate+"---\napiVersion: v1\nkind: Secret\nmetadata: {name: NotAName}\n"))
	remedied := "package: {helm: {values: {region: eu-1, replicas: 2}, spec: {upgrade: {remediation: {retries: 1, remediateLastFailure: true}}}}}"
	w.assign("c1", w.release("1.0.0", remedied))
	w.becomes("c1", "shop", "shop-1.0.0", v1alpha1.StateSucceeded, "")
	w.assign("c1", w.release("3.0.0", remedied))
	w.becomes("c1", "shop", "shop-3.0.0", v1alpha1.StateFailed, "")
	w.says("1.0.0")
}

// Charts come from a registry and from a Git repository as well, and a HelmRelease that is to leave what it
// has installed is suspended before it goes.
func TestAChartOfAnotherSourceIsLeft(t *testing.T) {
	w := newWorld(t)
	w.manage()
	oci := w.release("1.0.0", values)
	url := "oci://registry.test/" + w.namespace
	testenv.Publish(w, url, "1.0.0", chart("shop", "1.0.0", goodTemplate))
	oci.Source = &v1alpha1.Source{OCI: &v1alpha1.OCISource{URL: url, Version: v1alpha1.OCIVersion{Tag: "1.0.0"}}}
	w.assign("c1", oci)
	w.becomes("c1", "shop", "shop-1.0.0", v1alpha1.StateSucceeded, "applied 1.0.0@sha256:")
	commit := testenv.Publish(w, w.url, "v1", chart("charts/shop", "1.1.0", goodTemplate))
	git := w.sync("shop", "v1", values+"\n")
	git.Package.Helm.Path = "charts/shop"
	git.DeletionPolicy = v1alpha1.Orphan
	w.assign("c1", git)
	if s := w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "applied 1.1.0+"); s.Resolved != commit {
		t.Errorf("%+v", s)
	}
	r := &helmv2.HelmRelease{}
	if err := w.client.Get(t.Context(), w.key("c1-shop"), r); err != nil {
		t.Fatal(err)
	}
	running := r.Status.LastAttemptedRevision
	w.assign("c1")
	w.gone(&helmv2.HelmRelease{}, "c1-shop")
	w.says(running)
	w.hasCharts(0, 0, 0)
}

// Where helm-controller is installed while the manager runs, a chart that waits for it is installed.
func TestHelmIsInstalledLater(t *testing.T) {
	t.Parallel()
	cp, installRest := testenv.WithoutHelm(t)
	w := &world{T: t, cp: cp, client: newClient(t, cp), namespace: "later", url: "https://git.test/later"}
	testenv.InstallKinds(t, w.client, kinds)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.manage()
	w.publishCharts()
	plain := w.sync("plain", "v1", "")
	w.publishFiles("v1", map[string]string{"cm.yaml": w.configMap("plain", "{version: v1}")}) // not what the chart has
	w.assign("c1", w.release("1.0.0", values), plain)
	w.becomes("c1", "shop", "shop-1.0.0", v1alpha1.StateWaiting, "HelmChart and HelmRepository of Flux are not installed")
	w.becomes("c1", "plain", "plain-v1", v1alpha1.StateUpdating, "") // what needs no Helm goes on
	installRest()
	w.becomes("c1", "shop", "shop-1.0.0", v1alpha1.StateSucceeded, "applied 1.0.0")
	w.says("1.0.0")
	w.assign("c1", plain)
	w.hasCharts(0, 0, 0)
}

// A bucket is fetched by its prefix, with a chart or without, and its digest is reported; what changes there is applied, and its
// source goes with the last that fetches from it.
func TestABucket(t *testing.T) {
	w := newWorld(t)
	w.manage()
	first := w.bucket("v1/")
	w.assign("c1", first)
	s := w.becomes("c1", "shop", "shop-v1/", v1alpha1.StateSucceeded, "applied sha256:")
	w.data("app", map[string]string{"version": "v1/"})
	testenv.Publish(t, "s3://s3.test/"+w.namespace, "v1/", map[string]string{"cm.yaml": w.configMap("app", "{version: changed}")})
	w.data("app", map[string]string{"version": "changed"})
	if now := w.becomes("c1", "shop", "shop-v1/", v1alpha1.StateSucceeded, "applied sha256:"); !strings.HasPrefix(s.Resolved, "sha256:") {
		t.Errorf("%s, and then %s", s.Resolved, now.Resolved)
	}
	charted := w.bucket("v2/")
	testenv.Publish(t, "s3://s3.test/"+w.namespace, "v2/", chart("charts/shop", "1.0.0", goodTemplate))
	w.adds(&charted, values)
	charted.Package.Helm.Path = "charts/shop"
	w.assign("c1", charted)
	w.becomes("c1", "shop", "shop-v2/", v1alpha1.StateSucceeded, "applied 1.0.0+")
	w.assign("c1")
	w.has(0, 0)
	w.hasCharts(0, 0, 0)
}

// hasCharts waits until there are so many HelmReleases, HelmCharts and HelmRepositories.
func (w *world) hasCharts(counts ...int) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		for i, list := range []client.ObjectList{&helmv2.HelmReleaseList{}, &sourcev1.HelmChartList{}, &sourcev1.HelmRepositoryList{}} {
			if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
				return err
			}
			if got := apimeta.LenList(list); got != counts[i] {
				return fmt.Errorf("there are %d of %T, not %d", got, list, counts[i])
			}
		}
		return nil
	})
}
