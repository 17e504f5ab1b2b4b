package status_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/rollout"
)

// size is how much there is of everything.
type size struct{ workloads, groups, instances, clusters int }

// pages is how many pages it takes to list n objects.
func pages(n int) int { return max((n+snapshot.PageSize-1)/snapshot.PageSize, 1) }

// pages is how many pages it takes to list everything.
func (s size) pages() int {
	zones := s.groups * zonesInGroup
	return pages(s.workloads) + pages(zones) + pages(0) + // Deployments, StatefulSets, DaemonSets
		pages(s.workloads) + pages(s.clusters) + // ConfigMaps, and the Secrets of clusters
		pages(zones*podsInZone) + pages(s.groups) + pages(s.instances) + // Pods, RolloutGroups, Instances
		pages(1) + pages(revisions) + pages(revisions) + pages(s.clusters) // Modules, their revisions and gates, ProxyAssemblages
}

// TestStatusOfMuch describes a large cluster and a small one. What it costs are lists,
// a request for each page of each kind, and a few ConfigMaps before they are listed.
func TestStatusOfMuch(t *testing.T) {
	w := newWorld(t)
	w.make(size{workloads: 5, groups: 2, instances: 2, clusters: 3})
	_, few := w.look()
	w.make(much)
	units, many := w.look()
	fmt.Printf("| requests of status: little of everything, %d workloads + %d groups + %d Instances + %d clusters | %d, %d |\n",
		much.workloads, much.groups, much.instances, much.clusters, few, many)
	if more := many - few; more > much.pages()+snapshot.Singly {
		t.Errorf("%d requests for little, and %d for much, which has %d pages", few, many, much.pages())
	}
	w.check(units)
	took := w.command()
	fmt.Printf("| spillway status -A of that (target: under 2 s) | %.2f s, %.2f s, %.2f s |\n", took[0].Seconds(), took[1].Seconds(), took[2].Seconds())
}

// look describes the cluster once, and counts the requests.
func (w *world) look() ([]describe.Unit, int) {
	w.t.Helper()
	before := len(w.requests.Requests())
	snapshot, err := describe.Describe(w.t.Context(), w.counted, describe.Options{Config: config.Options{Options: decision.Options{UpdateBurst: 1}, Now: time.Now}})
	if err != nil || len(snapshot.Unseen) > 0 {
		w.t.Fatal(err, snapshot.Unseen)
	}
	return snapshot.Units, len(w.requests.Requests()) - before
}

// check finds everything that was made in what was seen.
func (w *world) check(units []describe.Unit) {
	w.t.Helper()
	count := map[string]int{}
	var walk func(units []describe.Unit)
	walk = func(units []describe.Unit) {
		for i := range units {
			count[units[i].Kind]++
			walk(units[i].Units)
			if u := &units[i]; u.Phase != rollout.PhaseComplete && u.Sentence == "" && u.Kind != "ConfigMap" && u.Kind != "Stage" {
				w.t.Errorf("%s is %s, and does not say why", u, u.Phase)
			}
		}
	}
	walk(units)
	for kind, want := range map[string]int{"Deployment": much.workloads, "RolloutGroup": much.groups, "Zone": much.groups * zonesInGroup, "Instance": much.instances, "Cluster": much.clusters} {
		if count[kind] < want {
			w.t.Errorf("%d of %d of kind %s are seen", count[kind], want, kind)
		}
	}
}

// command runs the command three times.
func (w *world) command() (took [3]time.Duration) {
	w.t.Helper()
	for i := range took {
		var out, errs bytes.Buffer
		start := time.Now()
		code := cli.Run(w.t.Context(), command.Environment{
			Args: []string{"spillway", "status", "-A"}, Out: &out, Err: &errs, Now: time.Now,
			Lookup: func(name string) (string, bool) {
				return testenv.Shared().Kubeconfig(), name == "SPILLWAY_KUBECONFIG"
			},
		})
		took[i] = time.Since(start)
		if code != 0 || !strings.Contains(out.String(), "zones: ") || !strings.Contains(out.String(), "more: ") {
			w.t.Fatal(errs.String(), out.String())
		}
	}
	return took
}
