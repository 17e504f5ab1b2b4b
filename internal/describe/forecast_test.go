package describe

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/estimate"
	fleet "github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/plans"
	zones "github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// What progresses or waits ends when its status says so, in every ring; what needs a user first has
// no end.
func TestEndsOfStatuses(t *testing.T) {
	in := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	f := &estimate.Forecast{At: in(0), Earliest: in(2), Expected: in(3), Latest: in(6), Decides: "c"}
	for phase, ends := range map[rollout.Phase]bool{
		rollout.PhaseProgressing: true, rollout.PhaseWaiting: true, rollout.PhasePaused: false, rollout.PhaseFailed: false, rollout.PhaseComplete: false,
	} {
		group := Group(&zones.Explanation{Phase: string(phase), Forecast: (*v1alpha1.Forecast)(f)})
		module := Module(&fleet.Explanation{Phase: string(phase), Forecast: (*fleetv1.Forecast)(f)})
		instance := Instance(&plans.Explanation{Phase: phase, Forecast: (*v1beta1.Forecast)(f)})
		for _, u := range []Unit{group, module, instance} {
			if (u.Ends != nil) != ends || ends && *u.Ends != (Range{in(2).Time, in(3).Time, in(6).Time}) {
				t.Errorf("%s in phase %s ends %v", u.Kind, phase, u.Ends)
			}
		}
	}
	const want = "forecast: ends 2026-05-04 12:03:00 UTC | between 2026-05-04 12:02:00 UTC and 2026-05-04 12:06:00 UTC | c decides"
	for kind, of := range map[string][]Fact{
		"group":  GroupFacts(&zones.Explanation{Forecast: (*v1alpha1.Forecast)(f)}, nil),
		"module": ModuleFacts(&fleet.Explanation{Forecast: (*fleetv1.Forecast)(f)}),
	} {
		if !strings.Contains(lines(of), want) {
			t.Errorf("%s: %v", kind, lines(of))
		}
	}
}
