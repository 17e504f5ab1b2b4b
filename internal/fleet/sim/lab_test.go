package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// many is a fleet of 300 clusters, as fleets are: 5% do not answer, 2% are suspended, 2% are not ready whatever
// they are assigned, and every tenth first try fails.
func many() *story {
	const seed, clusters = 3, 300

	w := newWorld(seed, false)
	w.clusters, w.assemblages, w.revisions, w.flaps, w.storm, w.mortal = nil, map[string]assemblage{}, nil, false, false, true
	w.module.status = v1alpha1.ModuleStatus{}
	w.respec(func(s *v1alpha1.ModuleSpec) {
		s.Strategy, s.Selector = v1alpha1.Incremental, &metav1.LabelSelector{}
		s.Rollout = &v1alpha1.Rollout{
			ProgressDeadlineSeconds: new(int32(600)), OnFailure: v1alpha1.Rollback, MaxUnreadyClusters: new(intstr.FromString("10%")),
			Stages: []v1alpha1.Stage{{Name: "canary", Clusters: new(intstr.FromInt32(1)), SoakSeconds: 30}, {Name: "rest"}},
		}
	})

	for i := range clusters {
		w.join()
		c := &w.clusters[i]
		c.Ready, c.deselected, c.Labels = true, false, map[string]string{"env": "prod"}
		c.sick, c.flaky = i%50 == 1, i%10 == 5
	}
	w.settled()

	for i := range w.clusters {
		c := &w.clusters[i]
		c.Unreachable, c.suspended = i%20 == 3, i%50 == 2
	}
	w.clustersAt = w.next()

	s := &story{simulation: &simulation{world: w}}
	s.first = newManager(w, allRules(), "hub-1")
	s.managers = []*manager{s.first}

	return s
}

// until has the hub go on until something is so, for an hour at the most.
func (s *story) until(t *testing.T, what string, is func() bool) {
	t.Helper()

	for range 3600 {
		if s.goesOn(s.first); s.Verdict() != "" {
			t.Fatalf("%s: %s", what, s.Verdict())
		}

		if is() {
			return
		}
	}
	t.Fatalf("%s does not come: %s %s", what, s.world.module.status.Phase, s.world.module.status.WaitingFor)
}

// tally is how many clusters are assigned what, and are up: "v1 21 (15 up), v2 279 (273 up)".
func (w *world) tally(revisions ...string) string {
	var parts []string
	for i, revision := range revisions {
		up := 0
		for j := range w.clusters {
			up += one(w.assemblages[w.clusters[j].Name].revision == revision && w.isUp(w.clusters[j].Name))
		}
		parts = append(parts, fmt.Sprintf("v%d %d (%d up)", i+1, w.assigned(revision), up))
	}

	return strings.Join(parts, ", ")
}

// TestThreeHundredClusters: a good revision arrives at all that can run it, whatever is the matter with the
// others; a bad one returns after the canary, and a hub that is rebuilt does not send it again.
func TestThreeHundredClusters(t *testing.T) {
	s := many()
	w, v1 := s.world, s.world.wanted()
	w.newTag(true)
	v2 := w.wanted()
	s.until(t, "the good revision", func() bool { return w.module.status.CurrentRevision == v2 })
	s.until(t, "the end of it", func() bool { return w.assigned(v2) == 279 && w.allUpBut(12) })

	// 15 do not answer and 6 are suspended; of those that have it, 6 are sick.
	if got, want := w.tally(v1, v2), "v1 21 (0 up), v2 279 (273 up)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}

	if sum := w.module.status.Summary; sum.Skipped != 21 || w.counts["Assign"] != 279 || w.module.status.RolledBack != "" {
		t.Errorf("%d skipped, %d assigned, given up: %q", sum.Skipped, w.counts["Assign"], w.module.status.RolledBack)
	}

	w.newTag(false)
	v3 := w.wanted()
	s.until(t, "the return", func() bool { return w.module.status.RolledBack == v3 && w.assigned(v3) == 0 })
	s.until(t, "the copies", func() bool { return w.copies(v3) == 300 })

	if w.counts["Assign"] != 279+2 { // the canary there, and back
		t.Errorf("%d were assigned", w.counts["Assign"])
	}

	if past := w.module.status.History[1]; past.Revision != v3 || !strings.Contains(past.Message, " failed") {
		t.Errorf("the history is %+v", past)
	}

	w.loseHub()
	s.first.begins()
	s.until(t, "the hub that is rebuilt", func() bool { return w.module.status.RolledBack == v3 && w.assigned(v1)+w.assigned(v2) == 285 })

	for range 120 {
		s.after(10 * time.Second)
		s.goesOn(s.first)
	}

	if got := w.counts["Assign"]; got != 281 || s.Verdict() != "" {
		t.Errorf("%d were assigned: %s", got, s.Verdict())
	}
}

// allUpBut is true if all but so many of the clusters that answer are up.
func (w *world) allUpBut(most int) bool {
	down := 0
	for i := range w.clusters {
		down += one(!w.clusters[i].Unreachable && !w.isUp(w.clusters[i].Name))
	}

	return down <= most
}

// copies is with how many clusters a copy lies of what was given up.
func (w *world) copies(revision string) (n int) {
	for _, a := range w.assemblages {
		n += one(a.givenUp != nil && a.givenUp.Revision == revision)
	}

	return n
}
