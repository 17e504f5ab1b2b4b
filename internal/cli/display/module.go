package display

import (
	"io"
	"strconv"
	"strings"

	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
)

// Modules writes a line for each module.
func Modules(w io.Writer, s Style, found []decision.Explanation) {
	if len(found) == 0 {
		return
	}
	f := NewFacts(w, s)
	f.Line("NAMESPACE", "MODULE", "PHASE", "STAGE", "CLUSTERS", "FAILED", "TARGET", "WHY")
	for i := range found {
		e := &found[i]
		failed := int32(0)
		if e.Summary != nil {
			failed = e.Summary.Failed
		}
		f.Line(e.Namespace, strings.ToLower(e.Kind)+"/"+e.Name, e.Phase, e.Stage, e.UpToDate, strconv.Itoa(int(failed)), e.Target, e.Sentence)
	}
	f.Write()
}
