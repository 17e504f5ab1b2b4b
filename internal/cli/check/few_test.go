package check

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/cli/display"
)

// TestAnActionIsNotRepeated: who lacks sixty permissions reads what to do a few times, and all of
// them with -o json.
func TestAnActionIsNotRepeated(t *testing.T) {
	var findings []finding
	for _, group := range []string{"config", "zones"} {
		findings = append(findings, finding{Group: group, OK: true, What: "fine"})
		for i := range 30 {
			findings = append(findings, finding{Group: group, What: fmt.Sprintf("get r%d is not permitted", i), Action: "grant it", problem: "permission"})
		}
		findings = append(findings, finding{Group: group, What: "alone", Action: "correct it"}, finding{Group: group, What: "another problem", Action: "grant it", problem: "other"})
	}
	var out bytes.Buffer
	write(&out, display.Style{}, findings)
	const group = `
  ✓ fine
  ✗ get r0 is not permitted; grant it
  ✗ get r1 is not permitted; grant it
  ✗ get r2 is not permitted; 27 more like it, which -o json lists; grant it
  ✗ alone; correct it
  ✗ another problem; grant it
`
	if want := "config" + group + "zones" + group; strings.TrimSpace(out.String()) != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
