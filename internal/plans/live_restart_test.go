package plans_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// noted is a package whose plans leave a note in a ConfigMap each.
const noted = `
version: "%s"
parameters:
- {name: NODES, default: "1"}
- {name: COLOR, default: red, trigger: paint}
tasks:
- {name: note, kind: Apply, spec: {resources: [note.yaml]}}
- {name: unnote, kind: Delete, spec: {resources: [note.yaml]}}
templates:
  note.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{ .Name }}"}
    data: {plan: "{{ .PlanName }}", version: "{{ .OperatorVersion }}", nodes: "{{ .Params.NODES }}", color: "{{ .Params.COLOR }}"}
plans:
  deploy: &note {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: note, tasks: [note]}]}]}
  update: *note
  upgrade: *note
  paint: *note
  backup: *note
  cleanup: {phases: [{name: main, steps: [{name: unnote, tasks: [unnote]}]}]}
`

// TestRestart checks what the ring is for: a change that was made while no manager ran
// is carried out when a manager runs again, and nothing else is.
func TestRestart(t *testing.T) {
	for name, test := range map[string]struct {
		changes []func(*v1beta1.Instance)
		history string
		data    map[string]string
	}{
		"nothing": {nil, "deploy Complete", map[string]string{"plan": "deploy", "version": "1", "nodes": "1", "color": "red"}},
		"a parameter": {
			[]func(*v1beta1.Instance){set("NODES", "2")}, "deploy Complete, update Complete",
			map[string]string{"plan": "update", "version": "1", "nodes": "2", "color": "red"},
		},
		"a parameter with a trigger": {
			[]func(*v1beta1.Instance){set("COLOR", "blue")}, "deploy Complete, paint Complete",
			map[string]string{"plan": "paint", "version": "1", "nodes": "1", "color": "blue"},
		},
		"an upgrade": {
			[]func(*v1beta1.Instance){use("app-2")}, "deploy Complete, upgrade Complete",
			map[string]string{"plan": "upgrade", "version": "2", "nodes": "1", "color": "red"},
		},
		"two changes in a row": {
			[]func(*v1beta1.Instance){set("NODES", "2"), set("NODES", "3")}, "deploy Complete, update Complete",
			map[string]string{"plan": "update", "version": "1", "nodes": "3", "color": "red"},
		},
		"a change and its reversal": {
			[]func(*v1beta1.Instance){set("NODES", "2"), func(i *v1beta1.Instance) { i.Spec.Parameters = nil }}, "deploy Complete",
			map[string]string{"plan": "deploy", "version": "1", "nodes": "1", "color": "red"},
		},
		"an upgrade and its reversal": {
			[]func(*v1beta1.Instance){use("app-2"), use("app-1")}, "deploy Complete",
			map[string]string{"plan": "deploy", "version": "1", "nodes": "1", "color": "red"},
		},
		"a plan that is asked for": {
			[]func(*v1beta1.Instance){ask("backup")}, "deploy Complete, backup Complete",
			map[string]string{"plan": "backup", "version": "1", "nodes": "1", "color": "red"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := noticed(t)
			c.halt()
			for _, change := range test.changes {
				c.change("web", change)
			}
			c.manage()
			c.rests("web", test.history)
			for key, want := range test.data {
				if got := c.data("web")[key]; got != want {
					t.Errorf("%s is %q, not %q", key, got, want)
				}
			}
		})
	}
}

// noticed is a cluster in which plan deploy of Instance web is complete.
func noticed(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.operator("app-1", replace(noted, "%s", "1"))
	c.operator("app-2", replace(noted, "%s", "2"))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	return c
}

// TestRestartWithADelete checks that an Instance that was deleted while no manager ran
// is cleaned up and removed.
func TestRestartWithADelete(t *testing.T) {
	c := noticed(t)
	c.halt()
	c.remove(&v1beta1.Instance{}, "web")
	c.now("web") // its finalizer keeps it
	c.manage()
	c.gone(&v1beta1.Instance{}, "web")
	c.gone(&corev1.ConfigMap{}, "web")
}

// TestRestartOfAnUnseenInstance checks that an Instance that was created and changed
// while no manager ran is deployed once.
func TestRestartOfAnUnseenInstance(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", replace(noted, "%s", "1"))
	c.instance("web", "app-1")
	c.change("web", set("NODES", "7"))
	c.manage()
	c.rests("web", "deploy Complete")
	if got := c.data("web")["nodes"]; got != "7" {
		t.Errorf("nodes is %q", got)
	}
}
