package trials_test

import "strings"

func fleetTrials() []trial {
	const clusters = "it needs an API server for each cluster, with Flux; internal/fleet/hub, which starts them"
	return []trial{
		{point: "fleet: no clusters", promise: "a Module for no cluster is not ready, and check says whether Flux is installed", try: tryNoClusters},
		{point: "fleet: a rebuilt hub", promise: "a hub that was restored takes its fleet back, and changes nothing on the clusters", without: clusters},
		{point: "fleet: lost clusters", promise: "a cluster that is not known for a moment keeps its place in the budget", without: clusters},
		{point: "fleet: failures", promise: "clusters that failed, and may, free their places", without: clusters},
		{point: "fleet: removals", promise: "a selector that is edited removes no more clusters than its budget at a time", without: clusters},
	}
}

func tryNoClusters(w *world) {
	module := `{apiVersion: fleet.squaremo.dev/v1alpha1, kind: Module, metadata: {name: app}, spec: {selector: {matchLabels: {no: cluster}}, strategy: Incremental,
template: {spec: {sync: {source: {git: {url: "https://example.com/app", version: {tag: v1}}}}}}}}`
	w.manage("--rings=fleet")
	w.apply(module)
	said := w.field(module, has("NoClusters"), "status", "conditions")
	if strings.Contains(said, "status:True type:Ready") {
		w.t.Errorf("a Module for no cluster is %s", said)
	}
	if out, _ := w.run("check", "--rings=fleet", "--kubeconfig="+w.kubeconfig); !strings.Contains(out, "Flux: Kustomization") {
		w.t.Errorf("check does not say whether Flux is installed: %s", out)
	}
}
