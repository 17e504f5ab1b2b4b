package verdict_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// What was added is read back, and no more than there is room for: many workloads of one config, or some of many.
func TestAdoptions(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		of   func(int) workload.Baseline
		room bool
	}{
		"one config":   {func(int) workload.Baseline { return workload.Baseline{Template: hash, Scope: hash} }, true},
		"many configs": {func(i int) workload.Baseline { return workload.Baseline{Scope: fmt.Sprintf("%064d", i), First: hash} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, added := verdict.NewAdoptions("ns"), map[workload.Name]workload.Baseline{}
			if a.Record() != nil {
				t.Error("there is a record of none")
			}
			for i := range 5000 {
				w := workload.Name{Kind: workload.Deployment, Namespace: "ns", Name: fmt.Sprintf("service-%04d", i)}
				if a.Add(w, c.of(i)) {
					added[w] = c.of(i)
				}
			}
			if all := len(added) == 5000; all != c.room || len(added) < 1000 {
				t.Errorf("there is room for %d", len(added))
			}
			r := a.Record()
			raw, err := json.Marshal(r)
			if err != nil || len(raw) > 257<<10 {
				t.Errorf("the record has %d bytes: %v", len(raw), err)
			}
			read, is := verdict.Adopted(r)
			if !is || len(read) != len(added) {
				t.Fatalf("read %d of %d", len(read), len(added))
			}
			for w, b := range added {
				if read[w] != b {
					t.Fatalf("%s: read %+v, want %+v", w, read[w], b)
				}
			}
		})
	}
}
