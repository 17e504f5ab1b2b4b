package plans_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
)

// hostile are templates of a few characters that end or exhaust the process that renders
// them, with what becomes of the plan.
var hostile = map[string]string{
	`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ print $d }}`:                                    "it is nested too deeply, or contains itself",
	strings.Repeat(`{{ range 200000000000 }}{{ end }}`, 16):                                      "it takes more than 2s of processor time",
	`{{ $s := "0123456789abcdef" }}` + strings.Repeat(`{{ $s = print $s $s }}`, 28) + `{{ $s }}`: "it needs more than 64 MiB of memory",
}

// TestAHostileTemplateEndsItsPlanOnly: the plan of each ends with FATAL_ERROR, and other
// Instances are deployed meanwhile, and afterwards by a manager that was started again.
func TestAHostileTemplateEndsItsPlanOnly(t *testing.T) {
	c := newCluster(t)
	const plans = `
plans: {deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}}
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]`
	c.operator("good-1", "version: '1'"+plans+`
templates: {app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}}"}`)
	i := 0
	names := map[string]string{}
	for template, want := range hostile {
		i++
		name := fmt.Sprintf("hostile-%d", i)
		names[name] = want
		c.operator(name, "version: '1'"+plans+fmt.Sprintf("\ntemplates: {app.yaml: %q}", template))
	}
	c.manage()
	for name := range names {
		c.instance(name, name)
	}
	c.instance("web", "good-1")
	c.rests("web", "deploy Complete")
	for name, want := range names {
		c.waits(name, "template app.yaml cannot be rendered: "+want)
		c.rests(name, "deploy Failed")
	}
	c.halt()
	c.manage()
	c.instance("later", "good-1")
	c.rests("later", "deploy Complete")
}

// TestAStatusHasAnEnd: what users may write as long as the API server accepts it, and as
// many objects as a template can make, is no more than the API server accepts in a status.
func TestAStatusHasAnEnd(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", strings.Replace(one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {p: '{{ .Params.P }}', k: '{{ .Params.KEY }}'}}"),
		"{name: P, default: a}", "{name: P, default: a}, {name: KEY, default: k, immutable: true}", 1))
	c.operator("many-1", one("{{ range until 1001 }}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: 'app-{{ . }}'}}{{ end }}"))
	c.manage()
	long := strings.Repeat("x", 90<<10)
	c.instance("web", "app-1", "P", long, "KEY", long)
	c.rests("web", "deploy Complete")
	c.change("web", set("P", "b"+long))
	c.rests("web", "deploy Complete, update Complete")
	c.change("web", set("P", strings.Repeat("y", 300<<10)))
	c.waits("web", "spec.parameters: are 390 KiB long; must be at most 192 KiB together; keep long values in a ConfigMap or a Secret")
	c.instance("many", "many-1")
	c.rests("many", "deploy Failed")
	if got := c.now("many").Status.WaitingFor; !strings.Contains(got, "template t.yaml makes too many objects: an Instance may have 1000") {
		t.Error(got)
	}
}

// TestAnotherNamespacesVersionNeedsItsConsent: a user of one namespace does not get to see
// the templates of another, unless their owner shares them.
func TestAnotherNamespacesVersionNeedsItsConsent(t *testing.T) {
	owner := newCluster(t)
	user := newQuietCluster(t)
	owner.operator("private", `
version: "1"
plans: {deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}}
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]
templates: {app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {content: secret}}"}`)
	faults := fault.New()
	user.manageWith(faults, func(o *manager.Options) { o.Namespaces = append(o.Namespaces, owner.namespace) })
	user.apply(fmt.Sprintf("{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: web}, spec: {operatorVersion: {name: private, namespace: %s}}}", owner.namespace))
	user.waits("web", fmt.Sprintf("OperatorVersion private not found in namespace %s, or not shared; install it, or annotate it with spillway.dev/shared-with: %s", owner.namespace, user.namespace))
	if user.data("app") != nil {
		t.Error("the template of another namespace was rendered")
	}
	version := &v1beta1.OperatorVersion{}
	if err := owner.get(version, "private"); err != nil {
		t.Fatal(err)
	}
	version.Annotations = map[string]string{"spillway.dev/shared-with": "other, " + user.namespace}
	if err := owner.client.Update(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	user.rests("web", "deploy Complete")
	for _, r := range faults.Writes() {
		if r.Namespace != user.namespace {
			t.Errorf("a write outside the namespace of the Instance: %+v", r)
		}
	}
	if got := user.pins(); len(got) != 1 || !strings.HasPrefix(got[0], "web."+owner.namespace+".private-") {
		t.Errorf("pinned are %v", got)
	}
	if got := owner.pins(); len(got) > 0 {
		t.Errorf("pinned beside the OperatorVersion are %v", got)
	}
	user.remove(&v1beta1.Instance{}, "web")
	user.eventually(func() error {
		if got := user.pins(); len(got) > 0 {
			return fmt.Errorf("pinned are %v", got)
		}
		return nil
	})
}

// pins are the names of the ControllerRevisions in the namespace.
func (c *cluster) pins() []string {
	c.t.Helper()
	list, names := &appsv1.ControllerRevisionList{}, []string{}
	c.list(list)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}
