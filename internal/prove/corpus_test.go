//go:build corpus

package prove_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// defect is a change of the code that makes it wrong.
type defect struct {
	Name string `json:"name"`
	// File is where it is, below the root of the module; From stands there once, and becomes To.
	File, From, To string
	// Scenario is one in which the exploration finds it, Rule what it breaks.
	Scenario, Rule string
}

// TestCorpus puts defects into the code, one after another, and has the exploration find each.
func TestCorpus(t *testing.T) {
	raw, err := os.ReadFile("testdata/corpus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var defects []defect
	if err := yaml.UnmarshalStrict(raw, &defects); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range defects {
		t.Run(d.Name, func(t *testing.T) {
			file := filepath.Join(root, d.File)
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(code), d.From); n != 1 {
				t.Fatalf("%s has %q %d times, not once", d.File, d.From, n)
			}
			mutant, overlay := filepath.Join(t.TempDir(), "mutant.go"), filepath.Join(t.TempDir(), "overlay.json")
			replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutant}})
			if err != nil {
				t.Fatal(err)
			}
			for path, content := range map[string]string{mutant: strings.Replace(string(code), d.From, d.To, 1), overlay: string(replace)} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-count=1", "-run", "TestEveryFailureOfEveryScenario/"+d.Scenario+"$", ".").CombinedOutput()
			if err == nil || !strings.Contains(string(out), "{Rule:"+d.Rule+" ") {
				t.Errorf("%s does not break the rule %s: %v\n%s", d.Scenario, d.Rule, err, out)
			}
		})
	}
}
