package offline

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// TestManyClustersAreOneLine: of a stage with more clusters than anybody reads, a line says how many do the same, and the
// numbers of steps go on after them.
func TestManyClustersAreOneLine(t *testing.T) {
	t.Parallel()
	r := &simulate.Result{Settled: true, Stages: []simulate.Stage{
		{Object: "module/shop", Namespace: "default", Name: "canary"},
		{Object: "module/shop", Namespace: "default", Name: "rest", Begun: record.Offset(time.Minute)},
	}}
	add := func(cluster int, at time.Duration) {
		r.Steps = append(r.Steps, record.Step{
			At: record.Offset(at), Ring: record.RingFleet, Object: "module/shop", Namespace: "default", Unit: fmt.Sprintf("c%d", cluster), Does: "is assigned", From: "v1", To: "v2", Decision: cluster,
		})
	}
	add(0, 0)
	for i := range eachCluster + 1 {
		add(i+1, time.Minute+time.Duration(i)*time.Second)
	}
	r.Steps = append(r.Steps, record.Step{At: record.Offset(2 * time.Minute), Ring: record.RingFleet, Object: "module/shop", Namespace: "default", Unit: "c99", Does: "loses"})
	var out bytes.Buffer
	s := &simulation{namespace: "default"}
	s.write(&out, r, &simulate.Options{Readiness: world.Readiness{Default: world.Never}})
	const want = `  1.      +0s  fleet  module/shop c0 is assigned v1 → v2
  2.    +1m0s  fleet  module/shop stage rest: 21 clusters are assigned v1 → v2:
                      c1 first, c21 last at +1m20s
 23.    +2m0s  fleet  module/shop c99 loses
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
