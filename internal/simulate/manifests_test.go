package simulate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/source"
)

// parse reads a text.
func parse(t *testing.T, text string) []source.Document {
	t.Helper()
	documents, err := source.Read(strings.NewReader(text), source.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

const (
	dumped = `apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  uid: 3f0c
  resourceVersion: "3f0c"
  generation: 7
  creationTimestamp: "2026-05-04T12:00:00Z"
  managedFields: [{manager: kubectl, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {}}}]
data: {a: b}
`
	autoscaler = `apiVersion: autoscaling/%s
kind: HorizontalPodAutoscaler
metadata: {name: a}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}
`
	widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: app}, spec: {a: b}}\n"
	// widgets is the kind of widgets, which are in no namespace.
	widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Widget, plural: widgets}, versions: [{name: v1}]}
`
)

// An error of a simulation says where in the manifests it stands, and a manifest that is
// right is none.
func TestWhatIsRefusedAndWhere(t *testing.T) {
	t.Parallel()
	cluster := apimeta.NewDefaultRESTMapper(nil)
	cluster.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, apimeta.RESTScopeRoot)
	for name, c := range map[string]struct {
		base, change string
		installed    apimeta.RESTMapper
		want         string
	}{
		"a kind of others":                {base: widget, change: widget},
		"a kind that is defined later on": {base: widget + "---\n" + widgets, change: widget},
		"a kind that a cluster has not": {
			base: widget, installed: cluster,
			want: `-:1: no matches for kind "Widget" in version "example.com/v1"; write it in a version that is served, or install its CustomResourceDefinition first`,
		},
		"a kind that comes with the change": {base: widget + "---\n" + widgets, installed: cluster},
		"a dump of a cluster": {
			base: dumped, change: strings.NewReplacer("a: b", "a: c", "3f0c", "77aa").Replace(dumped),
		},
		"HorizontalPodAutoscalers of two versions": {
			base:   fmt.Sprintf(autoscaler, "v1") + "---\n" + strings.Replace(fmt.Sprintf(autoscaler, "v2"), "name: a", "name: b", 1),
			change: fmt.Sprintf(autoscaler, "v2") + "---\n" + strings.Replace(fmt.Sprintf(autoscaler, "v1"), "name: a", "name: b", 1),
		},
		"a kind of others in two versions": {base: widget, change: strings.Replace(widget, "v1", "v2", 1)},
		"two versions that nothing converts": {
			base: "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: a}}\n---\n{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaim, metadata: {name: b}}\n",
			want: `-:3: ResourceClaim b cannot be applied: others of its kind are of resource.k8s.io/v1; write all of one kind in one version, because nothing converts them here; fix the manifest as the message says`,
		},
		"a version that is not served": {
			base: "metadata: {name: a}\nkind: Deployment\napiVersion: apps/v1beta1\n",
			want: `-:3: no matches for kind "Deployment" in version "apps/v1beta1"; use apps/v1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := parse(t, c.base)
			var change []source.Document
			if c.change != "" {
				change = parse(t, c.change)
			}
			o := benchOptions()
			o.Installed = c.installed
			_, err := simulate.Run(t.Context(), objects(base), objects(change), o)
			got := ""
			if err != nil {
				got = simulate.Locate(err, append(base, change...)).Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// All mistakes are found where manifests are read, and none in what is right over
// another manifest.
func TestWhatIsFoundBeforeItIsApplied(t *testing.T) {
	t.Parallel()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	documents := parse(t, `apiVersion: apps/v1
kind: Deployment
metadata: {name: part}
spec: {replicas: 3, strategy: {type: Recreate}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: wrong}
spec:
  replicas: -1
  updateStrategy:
    type: OnDelete
    rollingUpdate: {maxUnavailable: 1}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: wrong}
spec:
  updateStrategy: {type: Rolling}
  unknown: true
`)
	want := `-:10: spec.replicas: Invalid value: -1: must be greater than or equal to 0; give it a value that the kind allows
-:13: spec.updateStrategy.rollingUpdate: Invalid value: {"maxUnavailable":1}: only allowed for updateStrategy 'RollingUpdate'; give it a value that the kind allows
-:20: DaemonSet has no field spec.unknown; fix its spelling or its place, or take it out
-:19: spec.updateStrategy: Unsupported value: {"type":"Rolling"}: supported values: "RollingUpdate", "OnDelete"; give it a value that the kind allows`
	if diff := cmp.Diff(want, simulate.Check(documents, scheme).Error()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Replicas follow a leader or a mirrored object of any kind, and nothing else. A manifest
// that sets them again does not keep them.
func TestReplicasFollow(t *testing.T) {
	t.Parallel()
	const template, leader = `apiVersion: rollout-operator.grafana.com/v1
kind: ReplicaTemplate
metadata: {name: ingester}
spec: {replicas: 3}
`, `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: zone-b, labels: {rollout-group: ingester}}
spec: {replicas: 3, serviceName: ingester, updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: b}}, template: {metadata: {labels: {app: b}}, spec: {containers: [{name: c, image: i}]}}}
`
	const mirrors = `    grafana.com/rollout-mirror-replicas-from-resource-name: ingester
    grafana.com/rollout-mirror-replicas-from-resource-kind: ReplicaTemplate
    grafana.com/rollout-mirror-replicas-from-resource-api-version: rollout-operator.grafana.com/v1
`
	set := func(annotations string) string {
		return `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: zone-a
  labels: {rollout-group: ingester}
  annotations:
` + annotations + `spec: {replicas: 3, serviceName: ingester, updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}
`
	}
	to := func(n, manifest string) string { return strings.Replace(manifest, "replicas: 3", "replicas: "+n, 1) }
	for name, test := range map[string]struct{ base, change, want string }{
		"a ReplicaTemplate": {template + "---\n" + set(mirrors), to("1", template), "zones rolloutgroup/ingester zone-a is scaled: 3 replicas → 1 replica"},
		"another kind": {
			strings.Replace(template+"---\n"+set(mirrors), "ReplicaTemplate", "Other", 2), to("5", strings.Replace(template, "ReplicaTemplate", "Other", 1)),
			"zones rolloutgroup/ingester zone-a is scaled: 3 replicas → 5 replicas",
		},
		"a leader":         {leader + "---\n" + set("    grafana.com/rollout-downscale-leader: zone-b\n"), to("2", leader), "kube statefulset/zone-b is scaled: 3 replicas → 2 replicas, zones rolloutgroup/ingester zone-a is scaled: 3 replicas → 2 replicas"},
		"an equal number":  {template + "---\n" + set(mirrors), strings.Replace(template, "{name: ingester}", "{name: ingester, labels: {a: b}}", 1), ""},
		"a leader's image": {leader + "---\n" + set("    grafana.com/rollout-downscale-leader: zone-b\n"), strings.Replace(leader, "image: i", "image: j", 1), ""},
		"its own number": {to("1", template) + "---\n" + set(mirrors), strings.Replace(set(mirrors), "image: i", "image: j", 1),
			"zones rolloutgroup/ingester zone-a is scaled: 1 replica → 3 replicas, zones rolloutgroup/ingester zone-a is scaled: 3 replicas → 1 replica"},
		"what it follows is not": {set(mirrors), strings.Replace(set(mirrors), "image: i", "image: j", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, change := parse(t, test.base), parse(t, test.change)
			result, err := simulate.Run(t.Context(), objects(base), objects(change), benchOptions())
			if err != nil {
				t.Fatal(err)
			}
			var scaled []string
			for _, step := range result.Steps {
				if step.Does == "is scaled" {
					scaled = append(scaled, line(step))
				}
			}
			if got := strings.Join(scaled, ", "); got != test.want || !result.Settled {
				t.Errorf("settled %v: %s; want %s", result.Settled, got, test.want)
			}
		})
	}
}
