package plans_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// zoned is a package of a group of two zones, and a step that comes after it.
const zoned = `
version: "1"
parameters: [{name: IMAGE, default: x}, {name: BEHAVIOR, default: ""}]
tasks:
- {name: zones, kind: Apply, spec: {resources: [a.yaml, b.yaml]}}
- {name: after, kind: Apply, spec: {resources: [after.yaml]}}
templates:
  a.yaml: |
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: zone-a, labels: {rollout-group: db}}
    spec:
      replicas: 2
      serviceName: db
      podManagementPolicy: Parallel
      updateStrategy: {type: OnDelete}
      selector: {matchLabels: {app: zone-a}}
      template:
        metadata: {labels: {app: zone-a}{{ if .Params.BEHAVIOR }}, annotations: {testenv.spillway.dev/behavior: "{{ .Params.BEHAVIOR }}"}{{ end }}}
        spec: {containers: [{name: c, image: "{{ .Params.IMAGE }}"}]}
  b.yaml: |
B
  after.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: after}, data: {image: '{{ .Params.IMAGE }}'}}"
plans:
  deploy: &p {strategy: serial, phases: [{name: zones, steps: [{name: zones, tasks: [zones]}]}, {name: after, steps: [{name: after, tasks: [after]}]}]}
  update: *p
`

func zonedPackage() string {
	a := zoned[strings.Index(zoned, "    apiVersion"):strings.Index(zoned, "  b.yaml")]
	return replace(zoned, "B\n", strings.ReplaceAll(a, "zone-a", "zone-b"))
}

// TestAStepWaitsForTheGroup: a step that has applied StatefulSets of a group is
// complete when the group has rolled them, zone by zone, and says so meanwhile.
func TestAStepWaitsForTheGroup(t *testing.T) {
	c := newCluster(t)
	c.rings = []string{manager.RingZones, manager.RingPlans}
	c.operator("db-1", zonedPackage())
	c.manage()
	c.instance("db", "db-1")
	c.rests("db", "deploy Complete")
	c.pods("x", 4)

	c.change("db", set("IMAGE", "y", "BEHAVIOR", "never-ready"))
	c.waits("db", "RolloutGroup db")
	if got := c.data("after")["image"]; got != "x" {
		t.Errorf("what comes after the group was applied with %q before that was rolled", got)
	}
	if i := c.now("db"); i.Status.Place != "zones/zones" {
		t.Errorf("it is at %q", i.Status.Place)
	}
	c.pods("y", 1) // the first of them is not ready, so that none goes after it
	c.change("db", set("IMAGE", "z", "BEHAVIOR", ""), supersede)
	c.rests("db", "deploy Complete, update Superseded, update Complete")
	c.pods("z", 4)
	if got := c.data("after")["image"]; got != "z" {
		t.Errorf("what comes after the group was applied with %q", got)
	}
	group := &v1alpha1.RolloutGroup{}
	if err := c.get(group, "db"); err != nil || group.Status.Phase != "Complete" {
		t.Errorf("the group is %s: %v", group.Status.Phase, err)
	}
}

// pods waits until there are so many Pods, and all of them run this image.
func (c *cluster) pods(image string, n int) {
	c.t.Helper()
	c.eventually(func() error {
		if got := c.running(image); got != n {
			return fmt.Errorf("%d Pods run image %s, not %d", got, image, n)
		}
		return nil
	})
}

// running is how many Pods have this image.
func (c *cluster) running(image string) int {
	c.t.Helper()
	list, n := &corev1.PodList{}, 0
	c.list(list)
	for i := range list.Items {
		if list.Items[i].Spec.Containers[0].Image == image {
			n++
		}
	}
	return n
}

// configured is a package whose workload reads a ConfigMap, in which alone the
// parameter is.
const configured = `
version: "1"
parameters: [{name: LEVEL, default: info}]
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]
templates:
  app.yaml: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {level: "{{ .Params.LEVEL }}"}}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: app}
    spec:
      replicas: 1
      selector: {matchLabels: {app: app}}
      template:
        metadata: {labels: {app: app}}
        spec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: app}}]}]}
plans:
  deploy: &p {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
  update: *p
`

// TestTheConfigRingRollsAnInstance: when the config of an Instance's workload
// changes, by a plan or by hand, the config ring rolls it; and a plan that applies
// the workload again leaves the hash alone.
func TestTheConfigRingRollsAnInstance(t *testing.T) {
	c := newCluster(t)
	c.rings = []string{manager.RingConfig, manager.RingPlans}
	c.operator("app-1", configured)
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	first := c.rolled("")

	c.change("web", set("LEVEL", "debug"))
	c.rests("web", "deploy Complete, update Complete")
	second := c.rolled(first)

	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {level: warn}}`)
	third := c.rolled(second)

	revisions := c.replicaSets()
	c.change("web", ask("update"))
	c.rests("web", "deploy Complete, update Complete, update Complete") // which sets the level back
	if fourth := c.rolled(third); fourth != second {
		t.Errorf("the same config has hash %q, and had %q", fourth, second)
	}
	c.change("web", ask("update"))
	c.rests("web", "deploy Complete, update Complete, update Complete, update Complete")
	if got := c.replicaSets(); got != revisions {
		t.Errorf("there were %d revisions of the Deployment, and are %d", revisions, got)
	}
}

// rolled waits until the Deployment runs with another hash than before, and
// returns it.
func (c *cluster) rolled(before string) (hash string) {
	c.t.Helper()
	c.eventually(func() error {
		d := c.deployment("app")
		hash = vocabulary.ConfigHash.Get(d.Spec.Template.Annotations)
		if hash == "" || hash == before {
			return fmt.Errorf("its hash is %q", hash)
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != 1 || s.AvailableReplicas != 1 || s.Replicas != 1 {
			return fmt.Errorf("it is not rolled: %+v", s)
		}
		return nil
	})
	return hash
}

func (c *cluster) replicaSets() int {
	c.t.Helper()
	list := &appsv1.ReplicaSetList{}
	c.list(list)
	return len(list.Items)
}
