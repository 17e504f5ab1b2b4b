package lint_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/lint/rules"
	"github.com/spillway-dev/spillway/internal/source"
)

// sarifSchema is the schema of SARIF 2.1.0 with its first errata, as OASIS publishes it.
func sarifSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	raw, err := os.ReadFile("testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("sarif.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// sarif is a log as others read it.
type sarif struct {
	Schema string `json:"$schema"`
	Runs   []struct {
		OriginalURIBaseIDs map[string]struct {
			URI string `json:"uri"`
		} `json:"originalUriBaseIds"`
		Artifacts []struct {
			Roles []string `json:"roles"`
		} `json:"artifacts"`
		Tool struct {
			Driver struct {
				Name    string `json:"name"`
				Version string `json:"version"`
				Rules   []struct {
					ID string `json:"id"`
				} `json:"rules"`
			} `json:"driver"`
		} `json:"tool"`
		Results []struct {
			RuleID    string `json:"ruleId"`
			RuleIndex int    `json:"ruleIndex"`
			Locations []struct {
				PhysicalLocation struct {
					ArtifactLocation place `json:"artifactLocation"`
					Region           *struct {
						StartLine int `json:"startLine"`
					} `json:"region"`
				} `json:"physicalLocation"`
			} `json:"locations"`
		} `json:"results"`
	} `json:"runs"`
}

type place struct {
	URI       string `json:"uri"`
	URIBaseID string `json:"uriBaseId"`
	Index     *int   `json:"index"`
}

// log is findings as a log that fits the schema.
func log(t *testing.T, schema *jsonschema.Schema, findings []report.Finding, directory string) sarif {
	t.Helper()
	raw, err := json.Marshal(report.ToSARIF(findings, rules.All(), "v1.2.3", directory))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	var read sarif
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// TestSARIF: what all rules find fits the schema of OASIS, each result names its rule,
// and each has a place.
func TestSARIF(t *testing.T) {
	var findings []report.Finding
	for _, rule := range rules.All() {
		found, _ := lintFile(t, filepath.Join("testdata", rule.Code, "finds.yaml"))
		findings = append(findings, found...)
	}
	read := log(t, sarifSchema(t), findings, "/repository")
	run := read.Runs[0]
	if !strings.Contains(read.Schema, "sarif-schema-2.1.0") || run.Tool.Driver.Name != "spillway" || run.Tool.Driver.Version != "v1.2.3" {
		t.Errorf("%s of %s %s", read.Schema, run.Tool.Driver.Name, run.Tool.Driver.Version)
	}
	if len(run.Results) != len(findings) || len(run.Tool.Driver.Rules) != len(rules.All()) {
		t.Fatalf("%d results and %d rules", len(run.Results), len(run.Tool.Driver.Rules))
	}
	for i, r := range run.Results {
		if r.RuleID != findings[i].Code || run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || len(r.Locations) != 1 {
			t.Errorf("not whole: %+v", r)
		}
		if at := r.Locations[0].PhysicalLocation; at.Region == nil || at.Region.StartLine != findings[i].Line {
			t.Errorf("%s is at %+v", findings[i].Place(), at)
		}
	}
}

// TestPlacesInSARIF: a file of the repository is relative to its root, any other has an
// absolute URI, and standard input, which has none, is an artifact.
func TestPlacesInSARIF(t *testing.T) {
	schema, first := sarifSchema(t), 0
	for _, c := range []struct {
		file, directory string
		want            place
	}{
		{"deploy/web.yaml", "/repository", place{URI: "deploy/web.yaml", URIBaseID: "%SRCROOT%"}},
		{"./deploy/../web.yaml", "/repository", place{URI: "web.yaml", URIBaseID: "%SRCROOT%"}},
		{"/repository/deploy/a web.yaml", "/repository", place{URI: "deploy/a%20web.yaml", URIBaseID: "%SRCROOT%"}},
		{"v1:web.yaml", "/repository", place{URI: "./v1:web.yaml", URIBaseID: "%SRCROOT%"}},
		{"/elsewhere/web.yaml", "/repository", place{URI: "file:///elsewhere/web.yaml"}},
		{"../elsewhere/web.yaml", "/repository", place{URI: "file:///elsewhere/web.yaml"}},
		{"deploy/web.yaml", "", place{URI: "deploy/web.yaml"}},
		{source.Stdin, "/repository", place{Index: &first}},
	} {
		finding := report.Finding{File: c.file, Line: 3, Code: "SPW101", Level: report.Error, Message: "m", Action: "n."}
		run := log(t, schema, []report.Finding{finding}, c.directory).Runs[0]
		got := run.Results[0].Locations[0].PhysicalLocation.ArtifactLocation
		if got.URI != c.want.URI || got.URIBaseID != c.want.URIBaseID || (got.Index == nil) != (c.want.Index == nil) {
			t.Errorf("%s in %s: %+v, want %+v", c.file, c.directory, got, c.want)
		}
		if base := run.OriginalURIBaseIDs["%SRCROOT%"].URI; c.directory != "" && base != "file:///repository/" {
			t.Errorf("the root is %q", base)
		}
		if got.Index != nil && run.Artifacts[*got.Index].Roles[0] != "standardStream" {
			t.Errorf("standard input is %+v", run.Artifacts)
		}
	}
}

// TestTheSchemaOfSARIFRefuses what the specification does not allow: a mistake in a log
// would be noticed.
func TestTheSchemaOfSARIFRefuses(t *testing.T) {
	schema := sarifSchema(t)
	raw, err := json.Marshal(report.ToSARIF([]report.Finding{{File: "a.yaml", Line: 1, Code: "SPW101", Level: report.Error, Message: "m", Action: "n."}}, rules.All(), "v1", "/a"))
	if err != nil {
		t.Fatal(err)
	}
	for good, bad := range map[string]string{
		`"version":"2.1.0"`:   `"version":"2.0.0"`,
		`"level":"error"`:     `"level":"fatal"`,
		`"startLine":1`:       `"startLine":0`,
		`"uri":"a.yaml"`:      `"uri":"%zz.yaml"`,
		`"ruleId":"SPW101"`:   `"rule":"SPW101"`,
		`"name":"spillway"`:   `"names":"spillway"`,
		`"results":[`:         `"results":[{},`,
		`"unicodeCodePoints"`: `"bytes"`,
	} {
		spoiled := strings.Replace(string(raw), good, bad, 1)
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(spoiled))
		if err != nil || spoiled == string(raw) {
			t.Fatal(good, err)
		}
		if schema.Validate(document) == nil {
			t.Errorf("%s is let through", bad)
		}
	}
	if empty, err := json.Marshal(report.ToSARIF(nil, rules.All(), "", "")); err != nil || !bytes.Contains(empty, []byte(`"results":[]`)) {
		t.Errorf("without findings: %s, %v", empty, err)
	}
}
