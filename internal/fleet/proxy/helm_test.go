package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// publishChart has a Helm repository have a version of a chart with a ConfigMap.
func (w *world) publishChart(version string) {
	w.Helper()
	w.publishChartAs(version, version, "")
}

// publishChartAs has it have a version of a chart for what asks for something, with something else in it.
func (w *world) publishChartAs(asked, version, more string) {
	w.Helper()
	testenv.Publish(w, w.charts(), "shop:"+asked, map[string]string{
		"shop/Chart.yaml":          "apiVersion: v2\nname: shop\nversion: " + version + "\n",
		"shop/templates/more.yaml": more,
		"shop/templates/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {version: '{{ .Chart.Version }}', where: '{{ .Values.where }}'}\n",
	})
}

func (w *world) charts() string { return "https://charts.test/" + w.namespace }

// chart is a sync of it, whose values have the name of the cluster.
func (w *world) chart(version string) string {
	return fmt.Sprintf("name: chart\nrevision: chart-%[1]s\nsource: {helm: {url: %[2]q, chart: shop, version: %[1]s}}\npackage: {helm: {values: {where: $(CLUSTER_NAME)}}}", version, w.charts())
}

// noCharts waits until the hub has nothing of a chart any more.
func (w *world) noCharts() {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		for _, list := range []client.ObjectList{&helmv2.HelmReleaseList{}, &sourcev1.HelmChartList{}, &sourcev1.HelmRepositoryList{}} {
			if err := w.hub.List(ctx, list, client.InNamespace(w.namespace)); err != nil || apimeta.LenList(list) > 0 {
				return fmt.Errorf("there are %d of %T: %w", apimeta.LenList(list), list, err)
			}
		}
		return nil
	})
}

// The helm-controller of a cluster installs what the hub sends to it, and then that of the hub the same in
// its place; either is gone with its sync.
func TestChartsOfTheHubAndOfTheCluster(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.publishChart("1.0.0")
	w.assign("c0", w.chart("1.0.0"))
	w.becomes(proxied(), "c0", "chart-1.0.0", v1alpha1.StateSucceeded, "applied 1.0.0")
	w.data(0, map[string]string{"version": "1.0.0", "where": "c0"})
	w.assign("c0")
	w.data(0, nil)
	w.bootstrap("c0", w.chart("1.0.0"))
	w.becomes(remote(), "c0", "chart-1.0.0", v1alpha1.StateSucceeded, "applied 1.0.0")
	w.data(0, map[string]string{"version": "1.0.0", "where": "c0"})
	w.bootstrap("c0")
	w.noCharts()
	w.data(0, nil)
}

// charted is a module with a chart that goes to a canary, and then to one cluster of the rest after the other. Drift is
// corrected or reported, by its mode.
func (w *world) charted(version, drift string) string {
	return canaryFirst(1, fmt.Sprintf(`{interval: 2s, source: {helm: {url: %q, chart: shop, version: %q}}, package: {helm: {values: {where: $(CLUSTER_NAME)}, spec: {driftDetection: {mode: %s}}}}}`, w.charts(), version, drift))
}

func (w *world) moduleOfChart(version string) {
	w.Helper()
	w.moduleAs(w.charted(version, "enabled"))
}

// install waits until each cluster has the chart in such a version.
func (w *world) install(versions ...string) {
	w.Helper()
	for i, version := range versions {
		var data map[string]string
		if version != "" {
			data = map[string]string{"version": version, "where": fmt.Sprintf("c%d", i)}
		}
		w.data(i, data)
	}
}

// upgrades are how many releases of Helm each cluster has had.
func (w *world) upgrades(clusters int) string {
	w.Helper()
	var all []int
	for i := range clusters {
		r := &helmv2.HelmRelease{}
		if err := w.on(i).Get(w.Context(), w.key(fmt.Sprintf("c%d-shop", i)), r); err != nil {
			w.Fatal(err)
		}
		all = append(all, r.Status.History.Latest().Version)
	}
	return fmt.Sprint(all)
}

// A Module with a chart from its first version to its end, with all real parts: a range is what it was on the canary; the
// rest follows one by one; a version that is broken stops at the first cluster of its stage that fails, and what had it returns;
// what a user changes on a cluster is put back, or kept and reported.
func TestAChartRollsOverTheClusters(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for i := range 3 {
		w.join(i)
		w.label(i, map[string]string{"canary": fmt.Sprint(i == 0)})
	}
	w.publishChart("1.0.0")
	w.publishChartAs("1.x", "1.0.0", "")
	w.moduleOfChart("1.x")
	w.install("1.0.0", "", "")
	w.resolved("1.0.0")
	w.publishChart("1.1.0")
	w.publishChartAs("1.x", "1.1.0", "")
	w.approve()
	w.install("1.0.0", "1.0.0", "1.0.0")
	w.phase("Complete")

	w.moduleOfChart("1.1.0")
	w.install("1.1.0", "1.0.0", "1.0.0")
	w.approve()
	w.install("1.1.0", "1.1.0", "1.1.0")
	w.phase("Complete")
	before := w.upgrades(3)

	w.publishChartAs("2.0.0", "2.0.0", "{{ fail \"it is broken\" }}")
	w.moduleOfChart("2.0.0")
	w.returns("it is broken")
	w.install("1.1.0", "1.1.0", "1.1.0")
	if after := w.upgrades(3); after != before {
		t.Errorf("it was %s, and is %s", before, after) // nothing was upgraded, and so nothing had to return
	}

	w.publishChartAs("3.0.0", "3.0.0", "{{ if ne .Values.where \"c0\" }}{{ fail \"not here\" }}{{ end }}")
	w.moduleOfChart("3.0.0")
	w.install("3.0.0", "1.1.0", "1.1.0")
	w.approve()
	w.returns("not here")
	w.install("1.1.0", "1.1.0", "1.1.0")
	if after := w.upgrades(3); after != "[4 2 2]" {
		t.Errorf("the releases of Helm are %s", after)
	}

	w.edit(0, &corev1.ConfigMap{}, "app", `{"data": {"version": "by hand"}}`)
	w.edit(1, &helmv2.HelmRelease{}, "c1-shop", `{"spec": {"values": {"where": "by hand"}}}`)
	w.install("1.1.0", "1.1.0", "1.1.0")

	w.moduleAs(w.charted("1.1.0", "warn"))
	w.phase("Waiting")
	w.approve()
	w.phase("Complete")
	w.edit(0, &corev1.ConfigMap{}, "app", `{"data": {"version": "by hand"}}`)
	w.drifts("clusters with drift: 1, c0 among them: ")
	w.data(0, map[string]string{"version": "by hand", "where": "c0"}) // it is kept until it is to be corrected
	w.moduleOfChart("1.1.0")
	w.phase("Waiting")
	w.approve()
	w.install("1.1.0", "1.1.0", "1.1.0")
	w.drifts("")
	w.remove(w.hub, &v1alpha1.Module{}, "shop")
	w.gone(w.hub, &v1alpha1.Module{}, "shop")
	w.install("", "", "")
}

// resolved waits until the revision that is rolled out has this version from then on.
func (w *world) resolved(version string) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		p := proxied()
		if err := w.hub.Get(ctx, w.key("c0"), p); err != nil {
			return err
		}
		if is := p.Spec.Assemblage.Syncs[0].Source.Helm.Version; is != version {
			return fmt.Errorf("c0 is assigned %s", is)
		}
		return nil
	})
}

// returns waits until the module has given its revision up because of this, and all clusters are back.
func (w *world) returns(because string) {
	w.Helper()
	w.moduleIs(func(s *v1alpha1.ModuleStatus) bool {
		return s.Phase == "RolledBack" && s.GivenUp != nil && strings.Contains(s.GivenUp.Message, because)
	})
}

// drifts waits until this is all that the module notes.
func (w *world) drifts(note string) {
	w.Helper()
	w.moduleIs(func(s *v1alpha1.ModuleStatus) bool {
		notes := strings.Join(s.Rollout.Notes, "\n")
		return strings.HasPrefix(notes, note) && (note != "" || notes == "")
	})
}

// moduleIs waits until something is true of the module as it is wanted now.
func (w *world) moduleIs(is func(*v1alpha1.ModuleStatus) bool) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		m := &v1alpha1.Module{}
		if err := w.hub.Get(ctx, w.key("shop"), m); err != nil {
			return err
		}
		if m.Status.ObservedGeneration != m.Generation || !is(&m.Status) {
			return fmt.Errorf("%s: %s, %+v", m.Status.Phase, m.Status.WaitingFor, m.Status.Rollout)
		}
		return nil
	})
}

// edit changes something on a cluster as a user does.
func (w *world) edit(i int, obj client.Object, name, patch string) {
	w.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := w.on(i).Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl")); err != nil {
		w.Fatal(err)
	}
}
