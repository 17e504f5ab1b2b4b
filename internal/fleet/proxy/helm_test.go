package proxy_test

import (
	"context"
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// publishChart has a Helm repository have a version of a chart with a ConfigMap.
func (w *world) publishChart(version string) {
	w.Helper()
	testenv.Publish(w, w.charts(), "shop:"+version, map[string]string{
		"shop/Chart.yaml":        "apiVersion: v2\nname: shop\nversion: " + version + "\n",
		"shop/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {version: '{{ .Chart.Version }}', where: '{{ .Values.where }}'}\n",
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
