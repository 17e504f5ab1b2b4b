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
			if _, group := inner["properties"]; group {
				of, _ := defaults[name].(map[string]any)
				read, _ := known[name].(map[string]any)
				compare(path+"."+name, of, read, inner)
			}
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	delete(properties, "global") // of Helm
	compare("", defaults, known, schema)
}
