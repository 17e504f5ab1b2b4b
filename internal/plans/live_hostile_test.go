package plans_test

import (
	"fmt"
	"strings"
	"testing"
)

// hostile are templates of a few characters that end or exhaust the process that renders
// them, with what becomes of the plan.
var hostile = map[string]string{
	`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ print $d }}`:                                    "it is nested too deeply, or contains itself",
	strings.Repeat(`{{ range 200000000000 }}{{ end }}`, 16):                                      "it takes more than 2s of processor time",
	`{{ $s := "0123456789abcdef" }}` + strings.Repeat(`{{ $s = print $s $s }}`, 28) + `{{ $s }}`: "it needs more than 64 MiB of memory",
}

// TestAHostileTemplateEndsItsPlanOnly: the plan of each ends with FATAL_ERROR, and other
// Instances are deployed meanwhile, and afterwards by a manager that was started anew.
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
