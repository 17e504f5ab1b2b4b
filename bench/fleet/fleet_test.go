package fleet_test

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// maxBytes is how large an object may become.
const maxBytes = 64 << 10

// TestAFleet leads two fleets, of which one is several times as large as the other,
// through the same: a first revision, a new one, a cluster that joins, rest, and a
// restart with another revision waiting. A write for each cluster is what it costs;
// all else does not grow with the fleet.
func TestAFleet(t *testing.T) {
	few, many := tour(t, fewClusters), tour(t, clusters)
	perFew, perMany := float64(few.writes)/fewClusters, float64(many.writes)/clusters
	fmt.Printf("| writes for a new revision, a cluster: %d clusters, %d clusters | %.2f, %.2f |\n", fewClusters, clusters, perFew, perMany)
	if perMany > perFew*1.5 {
		t.Errorf("a new revision takes %.2f writes for each of %d clusters, and %.2f for each of %d", perMany, clusters, perFew, fewClusters)
	}
	if many.joining > few.joining+fewClusters/10 {
		t.Errorf("a cluster that joins costs %d requests in a fleet of %d, and %d in one of %d", many.joining, clusters, few.joining, fewClusters)
	}
}

// bill is what some things cost.
type bill struct {
	// writes are those for a new revision, joining the requests when a cluster joins.
	writes, joining int
}

func tour(t *testing.T, n int) (b bill) {
	t.Helper()
	w := newWorld(t, n)
	t.Run(fmt.Sprintf("%d clusters", n), func(t *testing.T) {
		w.t = t
		stop := w.manage()
		w.create(module(w.namespace))
		w.complete("v1")
		b.writes = w.newRevision("v2")
		b.joining = w.join()
		w.rest()
		w.comesBack()
		stop()
		w.restart("v3")
		w.sizes()
	})
	return b
}

// newRevision counts what a new revision costs the hub: exactly one write for each
// cluster, and of the status one for each step, however many clusters move in it.
func (w *world) newRevision(tag string) int {
	w.t.Helper()
	w.requests.Reset()
	w.watched.steps()
	start := time.Now()
	w.edit(tag)
	w.complete(tag)
	took, calls := time.Since(start), w.calls()
	writes := len(w.requests.Writes())
	fmt.Printf("| a new revision for %d clusters, a tenth at a time: requests | %s |\n", w.n, told(calls))
	fmt.Printf("| ... from the edit to the end; for comparison, the reports of the clusters are as many writes again | %.1f s |\n", took.Seconds())
	if assigned := calls["patch proxyassemblages"]; assigned != w.n {
		w.t.Errorf("%d writes to assemblages of %d clusters", assigned, w.n)
	}
	w.checkSteps(took)
	if calls["create modulerevisions"] != 1 {
		w.t.Errorf("%d revisions were made", calls["create modulerevisions"])
	}
	return writes
}

// checkSteps checks that a write of the status permits something, or is one of those
// that tell how far it has come, which is done once a second.
func (w *world) checkSteps(took time.Duration) {
	w.t.Helper()
	const besides = 10 // what is news: begun, a stage done, complete
	permits, moves := w.watched.steps()
	statuses := w.calls()["update modules/status"]
	fmt.Printf("| ... steps, clusters a step, writes of the status | %d, %.1f, %d |\n", permits, float64(moves)/float64(max(permits, 1)), statuses)
	if most := permits + besides + int(took/time.Second); statuses > most {
		w.t.Errorf("%d writes of the status for %d steps in %s, want at most %d", statuses, permits, took, most)
	}
}

// join counts what it costs that a cluster joins: whatever the number of clusters.
func (w *world) join() int {
	w.t.Helper()
	w.requests.Reset()
	w.cluster(w.n)
	w.n++
	w.complete("v2")
	calls := w.calls()
	fmt.Printf("| a cluster joins %d others: requests | %s |\n", w.n-1, told(calls))
	if calls["patch proxyassemblages"] != 1 {
		w.t.Errorf("%d writes to assemblages for one cluster", calls["patch proxyassemblages"])
	}
	total := 0
	for _, n := range calls {
		total += n
	}
	return total
}

// rest is that nothing is asked of the API server once all is done, also when
// everything about the clusters is looked at again.
func (w *world) rest() {
	w.t.Helper()
	w.settles()
	w.requests.Reset()
	w.touch()
	<-time.After(quietFor)
	calls := w.calls()
	fmt.Printf("| %d clusters at rest, %d of them touched: requests of any sort in %s | %d (0) |\n", w.n, touched, quietFor, len(calls))
	if len(calls) > 0 {
		w.t.Errorf("requests at rest: %s", told(calls))
	}
}

// comesBack has a revision fail, which is returned: status, explain and history say which cluster has failed, and how, also
// to who may read nothing but the Module.
func (w *world) comesBack() {
	w.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollout":{"onFailure":"Rollback"}}}`))
	if err := w.client.Patch(w.t.Context(), module(w.namespace), patch); err != nil {
		w.t.Fatal(err)
	}
	w.edit(bad)
	w.until(func() bool { s := w.watched.status(); return s.Phase == "RolledBack" && len(s.Moves) == 0 })
	viewer := "viewer-of-" + w.namespace
	testenv.Grant(w.t, w.client, w.namespace, viewer, []rbacv1.PolicyRule{{APIGroups: []string{"fleet.squaremo.dev"}, Resources: []string{"modules", "bootstrapmodules"}, Verbs: []string{"get", "list"}}})
	failed := regexp.MustCompile(`c[0-9]+ failed: Deployment web is not ready`)
	for _, args := range [][]string{{"status", "--rings=fleet"}, {"explain", "module/" + app}, {"history", "module/" + app}} {
		for _, as := range []string{"", viewer} {
			var out, errs bytes.Buffer
			code := cli.Run(w.t.Context(), command.Environment{
				Args: append(append([]string{"spillway"}, args...), "-n", w.namespace, "--as", as), Out: &out, Err: &errs, Now: time.Now,
				Lookup: func(name string) (string, bool) {
					return testenv.Shared().Kubeconfig(), name == "SPILLWAY_KUBECONFIG"
				},
			})
			if text := strings.Join(strings.Fields(out.String()), " "); code != 0 || !failed.MatchString(text) || strings.Count(out.String(), "\n") > 100 {
				w.t.Errorf("%s as %q: %d %s\n%.3000s", args, as, code, errs.String(), out.String())
			}
		}
	}
	h := w.watched.status().History
	i := slices.IndexFunc(h, func(p v1alpha1.PastRollout) bool { return p.Revision == revision(bad) })
	if i < 0 || h[i].Outcome != "RolledBack" || !failed.MatchString(h[i].Message) {
		w.t.Errorf("the history is %+v", h)
	}
}

// restart measures how soon a manager in a process of its own makes its first decision,
// which is about another revision, and how much memory it takes.
func (w *world) restart(tag string) {
	w.t.Helper()
	w.edit(tag)
	p := w.process(decidingTask)
	w.until(func() bool { return w.watched.status().TargetRevision == revision(tag) })
	took := time.Since(p.started)
	heap := p.memory(w.t).Heap
	fmt.Printf("| a manager of %d clusters restarts: to its first decision (target: at most 30 s) | %.1f s |\n", w.n, took.Seconds())
	fmt.Printf("| ... live heap; most memory of the process so far | %.0f MiB; %.0f MiB |\n", heap, p.peak(w.t))
}

// sizes checks how large objects have become at most.
func (w *world) sizes() {
	w.t.Helper()
	module, assemblage := w.watched.largest()
	fmt.Printf("| the largest Module, assemblage in all of this, %d clusters (target: at most 64 KiB) | %.1f KiB, %.1f KiB |\n",
		w.n, float64(module)/1024, float64(assemblage)/1024)
	if max(module, assemblage) > maxBytes {
		w.t.Errorf("a Module of %d bytes, an assemblage of %d", module, assemblage)
	}
}

// calls are the requests since the last reset, counted by what they are: all but
// watches, Events, and the question whether Cluster API was installed meanwhile, which
// is asked every ten seconds until it is, whatever the number of clusters.
func (w *world) calls() map[string]int {
	calls := callsOf(w.requests.Requests())
	maps.DeleteFunc(calls, func(what string, _ int) bool { return strings.HasSuffix(what, " events") })
	return calls
}

// callsOf counts requests by what they are: all but watches and discovery.
func callsOf(requests []fault.Request) map[string]int {
	calls := map[string]int{}
	for _, r := range requests {
		if r.Verb == "watch" || r.Resource == "" {
			continue
		}
		what := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		calls[what]++
	}
	return calls
}

func told(calls map[string]int) string {
	var words []string
	for _, what := range slices.Sorted(maps.Keys(calls)) {
		words = append(words, fmt.Sprintf("%d %s", calls[what], what))
	}
	return strings.Join(words, ", ")
}
