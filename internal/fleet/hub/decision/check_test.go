package decision_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
)

func TestChecks(t *testing.T) {
	const (
		version = `checks: [{name: new, expression: cluster.version.minor >= 31, message: too old}]`
		labels  = `checks: [{name: eu, expression: 'cluster.labels.region == "eu"'}]`
		isNew   = "\nb v1 up region=eu"
	)
	serves := func(minor int64, ago time.Duration) *cluster.Facts {
		return &cluster.Facts{At: noon.Add(-ago), Major: 1, Minor: minor, Version: "v1.x"}
	}
	for name, test := range map[string]struct {
		spec, clusters, want string
		facts                *cluster.Facts
		asks                 []string
		wake                 time.Duration
	}{
		"it holds": {
			"strategy: Incremental, rollout: {" + labels + "}", "a v1 up region=eu", "a is updating from v1 to v2", nil, nil, 0,
		},
		"it does not, and others go on": {
			"strategy: Incremental, rollout: {" + labels + "}", "a v1 up region=us" + isNew,
			"b is updating from v1 to v2\na is waiting: skipped until check eu holds: \"cluster.labels.region == \\\"eu\\\"\" is false", nil, nil, 0,
		},
		"nor with Replace": {
			"rollout: {" + labels + "}", "a v1 up region=us" + isNew,
			"b is updating from v1 to v2\na is waiting: skipped until check eu holds: \"cluster.labels.region == \\\"eu\\\"\" is false", nil, nil, 0,
		},
		"nor on a cluster that has joined": {
			"strategy: Incremental, rollout: {" + labels + "}", "a region=us" + isNew,
			"b is updating from v1 to v2\na is waiting: skipped until check eu holds: \"cluster.labels.region == \\\"eu\\\"\" is false", nil, nil, 0,
		},
		"what has the revision is not checked": {
			"strategy: Incremental, rollout: {" + labels + "}", "a v2 up region=us", "", nil, nil, 0,
		},
		"what cannot be evaluated does not hold": {
			"rollout: {" + labels + "}", "a v1 up", "a is waiting: skipped until check eu holds: condition: no such key: region", nil, nil, 0,
		},
		"it is not known what it serves": {
			"rollout: {" + version + "}", "a v1 up", "a is waiting: skipped until check new holds: it is not known yet what the cluster serves", nil, []string{"a"}, 0,
		},
		"it is known": {
			"rollout: {" + version + "}", "a v1 up", "a is updating from v1 to v2", serves(31, time.Second), nil, 0,
		},
		"that was long ago": {
			"rollout: {" + version + "}", "a v1 up", "a is waiting: skipped until check new holds: it is not known yet what the cluster serves now", serves(31, time.Hour), []string{"a"}, 0,
		},
		"it is too old": {
			"rollout: {" + version + "}", "a v1 up", "a is waiting: skipped until check new holds: too old (its Kubernetes is v1.x)", serves(30, time.Second), nil, 59 * time.Second,
		},
		"it is asked again": {
			"rollout: {" + version + "}", "a v1 up", "a is waiting: skipped until check new holds: too old (its Kubernetes is v1.x)", serves(30, time.Minute), []string{"a"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := planned(t, test.spec, test.clusters)
			o.Clusters[0].Facts = test.facts
			p := decision.Decide(o)
			if got := said(&p); got != test.want {
				t.Errorf("it says\n%s\nwant\n%s", got, test.want)
			}
			if !slices.Equal(p.Asks, test.asks) {
				t.Errorf("it asks %v, want %v", p.Asks, test.asks)
			}
			if test.wake > 0 && !p.Wake.Equal(noon.Add(test.wake)) {
				t.Errorf("it looks again at %s", p.Wake)
			}
		})
	}
}

// What was permitted before the check ceased to hold is withdrawn.
func TestAMoveIsWithdrawnIfACheckCeasesToHold(t *testing.T) {
	o := planned(t, `strategy: Incremental, rollout: {checks: [{name: no, expression: "false"}]}`, "a v1 up")
	o.Module.Status.TargetRevision = revisionOf("v2")
	o.Module.Status.Moves = []v1alpha1.Move{{Cluster: "a", Revision: revisionOf("v2"), At: metav1.NewMicroTime(noon)}}
	p := decision.Decide(o)
	if len(p.Writes) > 0 && p.Writes[0].Act == decision.Assign {
		t.Errorf("it is assigned: %+v", p.Writes)
	}
	o.Live = true
	if p = decision.Decide(o); len(p.Writes) != 1 || p.Writes[0].Act != decision.Fence {
		t.Errorf("%+v", p.Writes)
	}
}
