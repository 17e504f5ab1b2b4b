package plans_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// spillway runs a command and returns what it printed.
func (c *cluster) spillway(args ...string) (out string, code int) {
	c.t.Helper()
	b := &testenv.Buffer{}
	all := append([]string{"spillway"}, args...)
	all = append(all, "--kubeconfig", testenv.Shared().Kubeconfig(), "-n", c.namespace)
	code = cli.Run(c.t.Context(), command.Environment{
		Args: all, Out: b, Err: b, Now: time.Now, Lookup: func(string) (string, bool) { return "", false },
	})
	return b.String(), code
}

// says runs a command that succeeds, and looks for texts in what it prints.
func (c *cluster) says(command string, texts ...string) {
	c.t.Helper()
	out, code := c.spillway(strings.Fields(command)...)
	if code != 0 {
		c.t.Fatalf("%s: exit code %d\n%s", command, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			c.t.Errorf("%s does not say %q:\n%s", command, text, out)
		}
	}
}

// fails runs a command that does not.
func (c *cluster) fails(command, text string) {
	c.t.Helper()
	if out, code := c.spillway(strings.Fields(command)...); code != 1 || !strings.Contains(out, text) {
		c.t.Errorf("%s: exit code %d, and not %q:\n%s", command, code, text, out)
	}
}

// TestCommands sees and steers plans as a person does.
func TestCommands(t *testing.T) {
	c := noticed(t)
	c.says("explain instance/web", "no plan is running, and all workloads are ready.", "plan deploy", "phase main", "step note")
	c.says("plan trigger web backup --wait", "instance/web plan backup requested", "plan backup COMPLETE")
	c.says("plan history web", "backup", "deploy", "Complete")
	c.says("plan status instance/web --wait", "plan backup")
	c.fails("plan trigger web none --wait", "no plan none; choose from backup, cleanup, deploy")
	c.fails("plan abandon web", "no plan is running")
	c.fails("plan retry web", "has not failed")
	c.fails("plan status absent", "not found")
}

// TestWhatHasFailedIsUninstalled: that a plan failed is no failure of the uninstallation.
func TestWhatHasFailedIsUninstalled(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", limited)
	c.operator("plain-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: Not_A_Name}}"))
	c.manage()
	c.instance("web", "app-1", "MEM", "200Mi")
	c.instance("plain", "plain-1")
	for _, name := range []string{"web", "plain"} {
		c.rests(name, "deploy Failed")
		c.says("package uninstall instance/"+name+" --yes --wait --timeout 2m", "instance/"+name+" deleted")
		c.gone(&v1beta1.Instance{}, name)
	}
}

// TestPlanStatusWaitsForTheSpec: the last plan is of another spec while the manager has not
// observed the present one, so it is not what the command waits for.
func TestPlanStatusWaitsForTheSpec(t *testing.T) {
	c := noticed(t)
	c.halt()
	c.change("web", set("NODES", "7"))
	c.fails("plan status web --wait --timeout 1s", "the plan has not ended after 1s")
	c.manage()
	c.says("plan status web --wait", "plan update COMPLETE")
}

// TestCommandsSteer gives a plan up and tries it again.
func TestCommandsSteer(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"))
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}`)
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "does not belong")
	c.says("explain instance/web", "ConfigMap app exists", "IN_PROGRESS")
	c.says("plan abandon web --reason mine --wait", "instance/web abandon of the running plan requested")
	c.says("plan history web", "Abandoned", "mine")
	c.fails("explain instance/web", "error: Instance web needs an action: PlanInFatalError")
	c.remove(&corev1.ConfigMap{}, "app")
	c.says("plan retry web --wait", "plan deploy COMPLETE")
}

// TestTriggerWhileAPlanRuns shows the sentence of the guard alone, without how the API server
// passes it on.
func TestTriggerWhileAPlanRuns(t *testing.T) {
	c := newCluster(t)
	c.operator("admitted-1", admitted1)
	c.manage()
	c.instance("web", "admitted-1", "MUST", "m")
	c.rests("web", "deploy Complete")
	c.fails("plan trigger web cleanup", "error: change instance/web: plan cleanup runs when the Instance is deleted; request another plan\n")
	c.says("plan trigger web hold", "instance/web plan hold requested")
	c.active("web", "hold")
	c.fails("plan trigger web backup", "error: change instance/web: plan hold is running: spec.planExecution can request another plan after it has ended\n")
}

// undone is a package with tasks of which one deletes what the other applies.
var undone = map[string]string{
	"operator.yaml": `
apiVersion: kudo.dev/v1beta1
name: undone
operatorVersion: "1"
tasks:
- {name: note, kind: Apply, spec: {resources: [note.yaml]}}
- {name: unnote, kind: Delete, spec: {resources: [note.yaml]}}
plans:
  deploy: &plan {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: main, tasks: [note]}]}]}
  update: *plan
  upgrade: *plan
`,
	"params.yaml":         "apiVersion: kudo.dev/v1beta1\nparameters: [{name: COLOR, default: red}]\n",
	"templates/note.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: note}, data: {color: \"{{ .Params.COLOR }}\"}}\n",
}

// TestAPlanThatUndoesWhatItDoes is refused by each command that would have it run, before
// anything is written.
func TestAPlanThatUndoesWhatItDoes(t *testing.T) {
	c := newCluster(t)
	c.manage()
	dir := t.TempDir()
	for name, text := range undone {
		write(t, filepath.Join(dir, name), text)
	}
	c.says("package install "+dir+" web --wait", "plan deploy COMPLETE")
	c.says("package update instance/web -p COLOR=blue --wait", "plan update COMPLETE")
	next := changed(t, dir, map[string]string{"operator.yaml": `operatorVersion: "1"|operatorVersion: "2"`})
	next = changed(t, next, map[string]string{"operator.yaml": "tasks: [note]|tasks: [note, unnote]"})
	version := &v1beta1.OperatorVersion{}
	if err := c.get(version, "undone-1"); err != nil {
		t.Fatal(err)
	}
	for _, plan := range version.Spec.Plans {
		plan.Phases[0].Steps[0].Tasks = []string{"note", "unnote"}
	}
	if err := c.client.Update(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	for command, plan := range map[string]string{
		"package install " + next + " other":              "deploy",
		"package install undone other --in-cluster":       "deploy",
		"package update instance/web -p COLOR=green":      "update",
		"package upgrade instance/web " + next + " --yes": "upgrade",
		"package diff instance/web " + next:               "upgrade",
		"rollback instance/web --yes":                     "update",
	} {
		c.fails(command, "error: plan "+plan+" would fail: task unnote deletes ConfigMap note, which task note of the same step applies; give each of them a step of its own\n")
	}
	c.rests("web", "deploy Complete, update Complete")
	c.gone(&v1beta1.Instance{}, "other")
	c.gone(&v1beta1.OperatorVersion{}, "undone-2")
}
