package manifests_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/charts"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// Which image is installed: that of the values, and else the program's own.
func TestImageOfValues(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	for name, test := range map[string]struct{ values, own, want string }{
		"none":                            {``, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest},
		"a digest":                        {`image: {digest: "` + digest + `"}`, "ghcr.io/spillway-dev/spillway:v0.1.0", "ghcr.io/spillway-dev/spillway@" + digest},
		"a tag":                           {`image: {tag: mine}`, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest, "ghcr.io/spillway-dev/spillway:mine"},
		"a repository":                    {`image: {repository: example.test/spillway}`, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest, "example.test/spillway:v0.1.0"},
		"a repository with a port":        {`image: {repository: "example.test:5000/spillway"}`, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest, "example.test:5000/spillway:v0.1.0"},
		"the own one at a port":           {`image: {repository: example.test/spillway}`, "localhost:5000/spillway:v0.1.0", "example.test/spillway:v0.1.0"},
		"the own one at a port, by none":  {`image: {repository: example.test/spillway}`, "localhost:5000/spillway", "example.test/spillway"},
		"the own one at a port, a digest": {`image: {repository: example.test/spillway}`, "localhost:5000/spillway@" + digest, "example.test/spillway"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := manifests.ParseValues([]byte(test.values))
			if err != nil {
				t.Fatal(err)
			}
			if got := v.ImageOr(test.own); got != test.want {
				t.Errorf("it installs %s, want %s", got, test.want)
			}
		})
	}
}

// The manager may act as the accounts that are named, and by default as none.
func TestTheManagerActsAsNamedAccountsAlone(t *testing.T) {
	for name, test := range map[string]struct {
		accounts []string
		standard string
		watched  []string
		want     []string
		all      bool
	}{
		"by default":            {},
		"named":                 {accounts: []string{"b", "a"}, want: []string{"a", "b"}},
		"a default":             {accounts: []string{"b"}, standard: "a", want: []string{"a", "b"}},
		"all":                   {accounts: []string{"*"}, all: true},
		"in watched namespaces": {standard: "a", watched: []string{"shop"}, want: []string{"a"}},
	} {
		o := manifests.Default("config", "plans")
		o.Values.PlanAccounts, o.Values.DefaultAccount, o.Values.WatchNamespaces = test.accounts, test.standard, test.watched
		rules, err := o.RulesOfRole("spillway")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var all bool
		for _, rule := range rules {
			if !slices.Contains(rule.Verbs, "impersonate") {
				continue
			}
			if !slices.Equal(rule.Resources, []string{"serviceaccounts"}) || len(rule.Verbs) > 1 {
				t.Errorf("%s: %+v", name, rule)
			}
			got, all = rule.ResourceNames, len(rule.ResourceNames) == 0
		}
		if !slices.Equal(got, test.want) || all != test.all {
			t.Errorf("%s: it may act as %q, all: %v", name, got, all)
		}
		arguments, err := manifests.OwnArguments(o)
		if err != nil || arguments.Value("default-service-account", "") != test.standard {
			t.Errorf("%s: %v, %v", name, arguments, err)
		}
	}
	for _, wrong := range [][]string{{"a:b"}, {"../x"}} {
		o := manifests.Default("plans")
		if o.Values.PlanAccounts = wrong; o.Validate() == nil {
			t.Errorf("%q is no mistake", wrong)
		}
	}
	o := manifests.Default("config")
	if o.Values.DefaultAccount = "a"; o.Validate() == nil {
		t.Error("without the ring plans it is no mistake")
	}
}

// What the program reads, what the chart has by default, and what the schema allows are the same
// values. Their names are compared; the parts that Kubernetes defines are not taken apart.
func TestValuesAreThoseOfTheChart(t *testing.T) {
	var defaults, known, schema map[string]any
	raw, err := json.Marshal(manifests.DefaultValues())
	if err != nil {
		t.Fatal(err)
	}
	for file, to := range map[string]*map[string]any{"values.yaml": &defaults, "values.schema.json": &schema} {
		content, err := charts.Files.ReadFile("spillway/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(content, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		t.Fatal(err)
	}
	names := func(of map[string]any) []string { return slices.Sorted(maps.Keys(of)) }
	var compare func(path string, defaults, known, schema map[string]any)
	compare = func(path string, defaults, known, schema map[string]any) {
		allowed, _ := schema["properties"].(map[string]any)
		if !slices.Equal(names(defaults), names(known)) || !slices.Equal(names(defaults), names(allowed)) || schema["additionalProperties"] != false {
			t.Errorf("values%s: the chart has %v, the program %v, the schema %v", path, names(defaults), names(known), names(allowed))
		}
		for name := range allowed {
			inner, _ := allowed[name].(map[string]any)
			of, _ := defaults[name].(map[string]any)
			if _, group := inner["properties"]; group && len(of) > 0 {
				read, _ := known[name].(map[string]any)
				compare(path+"."+name, of, read, inner)
			}
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	delete(properties, "global") // of Helm
	compare("", defaults, known, schema)
}
