package manifest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/source"
)

// read are the manifests of a text.
func read(t *testing.T, text string) *manifest.Manifests {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	documents, unread := source.Read(strings.NewReader(text), "-")
	return manifest.New(documents, unread, manifest.Options{Scheme: scheme, Namespace: "shop", Now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)})
}

// Where a finding stands.
func TestPaths(t *testing.T) {
	t.Parallel()
	if got := manifest.Fields("spec.stages[2].name"); !slices.Equal(got, []string{"spec", "stages", "2", "name"}) {
		t.Errorf("fields %v", got)
	}
	if got := manifest.Item("spec.stages", 2, "gates"); !slices.Equal(got, []string{"spec", "stages", "2", "gates"}) {
		t.Errorf("item %v", got)
	}
	list := []any{map[string]any{"name": "a"}, "b"}
	for field, want := range map[string]any{"1": "b", "2": nil, "-1": nil, "name": nil} {
		if got := manifest.Step(list, field); got != want {
			t.Errorf("item %s is %v", field, got)
		}
	}
	if got := manifest.Step(manifest.Step(list, "0"), "name"); got != "a" {
		t.Errorf("the name is %v", got)
	}
	if got := manifest.Step("text", "name"); got != nil {
		t.Errorf("a field of a text is %v", got)
	}
}

const workload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, ANNOTATIONS}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, team: settings}}
    spec: {containers: [{name: app, image: app, ARGS}]}
`

func deployment(annotations, args string) string {
	return strings.NewReplacer("ANNOTATIONS", "annotations: {"+annotations+"}", "ARGS", args).Replace(workload)
}

// What names a ConfigMap or a Secret. Config that nothing names is found, so a mention
// that is overlooked is a wrong finding, and one that is none hides a right one.
func TestMentions(t *testing.T) {
	t.Parallel()
	config, secret := content.Object{Kind: content.ConfigMap, Namespace: "shop", Name: "settings"}, content.Object{Kind: content.Secret, Namespace: "shop", Name: "smtp"}
	for name, c := range map[string]struct {
		text           string
		config, secret bool
	}{
		"a label is none":       {text: deployment("", "command: [settings]")},
		"an argument":           {text: deployment("", "args: [--from=settings]"), config: true},
		"the path of a file":    {text: deployment("", "args: [--from=/etc/settings]")},
		"in another namespace":  {text: deployment("", "args: [--from=shop/smtp]"), secret: true},
		"a variable of config":  {text: deployment("", "env: [{name: CONFIG, value: settings}]"), config: true},
		"another variable":      {text: deployment("", "env: [{name: MODE, value: settings}]")},
		"an annotation":         {text: deployment("example.com/secret: smtp", "args: []"), secret: true},
		"another annotation":    {text: deployment("example.com/owner: smtp", "args: []")},
		"what a Role permits":   {text: "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [secrets], resourceNames: [smtp, settings], verbs: [get]}]\n", secret: true},
		"a ServiceAccount":      {text: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s}\nimagePullSecrets: [{name: smtp}]\n", secret: true},
		"an Ingress":            {text: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {tls: [{secretName: smtp}]}\n", secret: true},
		"a kind of its own":     {text: "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: s, namespace: shop}\nspec: {from: settings}\n", config: true},
		"a port of such a kind": {text: "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: s, namespace: shop}\nspec: {port: settings}\n"},
		"a sentence of it":      {text: "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: s, namespace: shop}\nspec: {note: the settings are good}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := read(t, c.text)
			if got := [2]bool{m.Mentions.Name(config), m.Mentions.Name(secret)}; got != [2]bool{c.config, c.secret} {
				t.Errorf("config and secret are named: %v", got)
			}
		})
	}
}

// Config may be made by what the manifests permit to create its kind where it is, and by
// what names it as what it makes.
func TestPossibleMaker(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: v1
kind: Pod
metadata: {name: init}
spec: {serviceAccountName: init, containers: [{name: init, image: init}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: init}
rules: [{apiGroups: [""], resources: [RESOURCE], verbs: [VERB]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: init}
roleRef: {kind: Role, name: init, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: init}]
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec: {secretName: web-tls}
`
	ref := content.Object{Kind: content.Secret, Namespace: "shop", Name: "db"}
	for rule, want := range map[string]string{
		"secrets create": "Pod init may create it, by its permissions", "'*' '*'": "Pod init may create it, by its permissions",
		"secrets get": "", "configmaps create": "",
	} {
		resource, verb, _ := strings.Cut(rule, " ")
		m := read(t, strings.NewReplacer("RESOURCE", resource, "VERB", verb).Replace(text))
		if got := m.PossibleMaker(ref); got != want {
			t.Errorf("%s: %q", rule, got)
		}
		elsewhere := ref
		if elsewhere.Namespace = "other"; m.PossibleMaker(elsewhere) != "" {
			t.Errorf("%s: a Role of another namespace makes it", rule)
		}
		tls := content.Object{Kind: content.Secret, Namespace: "shop", Name: "web-tls"}
		if got := m.PossibleMaker(tls); !strings.Contains(got, "names it") {
			t.Errorf("a Certificate: %q", got)
		}
	}
}
