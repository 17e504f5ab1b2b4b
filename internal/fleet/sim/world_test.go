package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// assemblage is what is assigned to a cluster, as the API server holds it, and
// what became of it.
type assemblage struct {
	uid        types.UID
	version    uint64
	generation int64
	fence      string

	assigned bool
	// leaving is true once it was taken away, until what ran is gone.
	leaving  bool
	revision string
	at       time.Time
	policy   v1alpha1.DeletionPolicy
	drifted  bool
	unready  bool
	// triedOnce is true once the first try has failed.
	triedOnce bool
	hold      *v1alpha1.Hold
	// exact is the commit that it is assigned, empty if it is the tag.
	exact string
	// looked is true once it is known what the cluster has: found, or nothing, or silent. Kept is
	// true of what was found and is assigned as it is.
	looked, silent, kept bool
	found                *v1alpha1.FoundSync
	// givenUp is the copy of what was given up.
	givenUp *v1alpha1.GivenUp
	// corrected is the generation by which it was put right, zero if it was not.
	corrected int64

	// What is reported, and of which assignment.
	seen      int64
	reported  string
	reportOf  time.Time
	state     v1alpha1.State
	since     time.Time
	succeeded string
	// proven is when that was assigned.
	proven time.Time
	// resolved is the commit that it succeeded with last.
	resolved string
}

// cluster is a cluster as the hub knows it, and how it does in truth.
type cluster struct {
	model.Cluster

	// begun is when it began to carry out what it is assigned, takes how long that is.
	begun time.Time
	takes time.Duration
	// fetched is the commit that it has fetched last.
	fetched string
	// deselected is true once it was not selected at some moment.
	deselected bool
	// hidden is true while nothing on the hub stands for it.
	hidden bool
	// former is what a hub that was lost has assigned, nil once another has taken it over.
	former *assemblage
	// blinked is true if it did not answer at some time since.
	blinked bool
	// suspended is true while a user has suspended what applies the module, sick of one that nothing
	// makes ready. Tried is true once the first try of what it is assigned has failed.
	suspended, sick, tried bool
	// flaky is true of one of which the first try fails.
	flaky bool
}

// module is the Module as the API server holds it.
type module struct {
	version    uint64
	generation int64
	finalized  bool
	spec       v1alpha1.ModuleSpec
	// approval is what the user has approved of removals.
	approval string
	// retry is what the user has retried last.
	retry  *model.Retry
	status v1alpha1.ModuleStatus
}

// world is what there is, and the dice.
type world struct {
	rnd    *rand.Rand
	now    time.Time
	oracle *oracle

	version uint64
	// clustersAt, recordsAt and othersAt are the versions of the last change of
	// clusters, of assemblages, and of revisions and gates.
	clustersAt, recordsAt, othersAt uint64

	module      module
	clusters    []cluster
	assemblages map[string]assemblage
	revisions   []model.Revision
	gates       []model.Gate
	// good are the tags that work.
	good map[string]bool
	tags int
	// tagged is true of a world in which revisions name tags, and not commits.
	tagged bool
	// moved is how often the tag of a revision was moved.
	moved map[string]int

	habits

	// skewed is true of a world in which clocks are wrong, as was that of the manager that
	// assigned what exists at first.
	skewed bool
	// fickle is true of a world in which the user changes the selector.
	fickle bool
	// thrifty is true of a world that keeps no old revisions, and in which the user goes back
	// to old templates.
	thrifty bool
	// capped is how many clusters of all stages together may be down, zero if there is no such
	// limit.
	capped int
	// mortal is true of a world in which the hub is lost with all that it knows, and rebuilt.
	mortal bool
	// ailing is true of a world in which some clusters are suspended, sick or offline, and the
	// first try of some fails.
	ailing bool
	// stubborn is true of a world in which what fails is given up, and the user retries it.
	stubborn bool
	// lost is how often the hub was.
	lost int
	// flaps is true of a world in which clusters become unready without a write.
	flaps bool
	// lossy is true of a world in which what stands for a cluster is taken away and put
	// back.
	lossy bool
	storm bool
	names int
	// flights are requests that have not arrived.
	flights []flight
	// writes are those of the managers.
	writes int
	counts map[string]int
	told   bool
	log    []string
}

// habits are how likely things go wrong in a world; each has its own.
type habits struct {
	// lazy is how likely a manager does not look at a kind again, frozen that it
	// loses a watch, sleepy that it does not run for a while.
	lazy, frozen, sleepy float64
	// keen is how likely a cluster goes on with its work.
	keen float64
}

const moduleName = "app"

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func newWorld(seed uint64, told bool) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 7)), now: noon, storm: true, told: told,
		assemblages: map[string]assemblage{}, good: map[string]bool{}, moved: map[string]int{}, counts: map[string]int{},
	}
	w.oracle, w.tagged, w.skewed = newOracle(w), seed%4 == 1, seed%8 == 2
	w.fickle, w.thrifty, w.lossy = seed%8 == 4, seed%16 == 14, seed%8 == 3
	w.mortal, w.ailing = seed%8 == 7, seed%8 == 0 || seed%16 == 7
	if seed%16 == 6 {
		w.capped = 1 + int(seed/16%3)
	}
	w.stubborn = seed%16 == 5 || seed%32 == 7
	w.flaps = w.chance(0.5)
	w.habits = habits{
		lazy: w.rnd.Float64(), frozen: w.rnd.Float64() * 0.05, sleepy: w.rnd.Float64() * 0.05, keen: 0.3 + w.rnd.Float64()*0.7,
	}
	w.module = module{version: w.next(), generation: 1, spec: w.policy()}
	w.newTag(true)

	if w.thrifty {
		w.module.spec.RevisionHistoryLimit = new(int32(0))
	}

	for range w.size() {
		w.join()
	}

	if w.stubborn || w.chance(0.8) {
		w.settled()
	}

	if w.stubborn {
		w.newTag(false)
	}

	return w
}

// settled makes it a world in which the first revision has got everywhere.
func (w *world) settled() {
	good := w.wanted()
	w.module.finalized, w.module.status.CurrentRevision = true, good
	w.revisions, w.othersAt = []model.Revision{w.newRevision(good, 1)}, w.next()

	at := noon.Add(-time.Hour)
	if w.skewed {
		at = noon.Add(2 * time.Minute)
	}

	for i := range w.clusters {
		if c := &w.clusters[i]; c.Ready && w.isSelected(&c.Cluster) {
			w.changed(c.Name, assemblage{
				uid: "a" + c.UID, assigned: true, revision: good, at: at, policy: v1alpha1.Delete, seen: 1,
				reported: good, reportOf: at, state: v1alpha1.StateSucceeded, since: noon.Add(-time.Hour), succeeded: good, proven: at,
				resolved: w.found(&assemblage{}, w.commit(good)),
			}, true)
			c.fetched = w.commit(good)

			if a := w.assemblages[c.Name]; c.sick {
				a.state, a.proven = v1alpha1.StateFailed, time.Time{}
				w.changed(c.Name, a, false)
			}
		}
	}
}

// newRevision is a revision as it is made.
func (w *world) newRevision(name string, n int64) model.Revision {
	return model.Revision{Name: name, Number: n, UID: types.UID(number(w.next())), ResourceVersion: number(w.next())}
}

// size is how many clusters there are at first: most often a handful, now and then
// hundreds.
func (w *world) size() int {
	switch w.rnd.IntN(1000) {
	case 0:
		return 100 + w.rnd.IntN(401)
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
		return 20 + w.rnd.IntN(60)
	default:
		return w.rnd.IntN(8)
	}
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

func (w *world) seconds(from, to int) time.Duration {
	return time.Duration(from+w.rnd.IntN(to-from+1)) * time.Second
}

// next is a new resource version.
func (w *world) next() uint64 {
	w.version++

	return w.version
}

// count counts something that happened.
func (w *world) count(what string) { w.counts[what]++ }

func (w *world) notef(format string, args ...any) {
	if w.told {
		w.log = append(w.log, w.now.Format("15:04:05  ")+fmt.Sprintf(format, args...))
	}
}

// join adds a cluster.
func (w *world) join() {
	w.names++
	c := cluster{Cluster: model.Cluster{
		Name: "c" + strconv.Itoa(w.names), UID: types.UID("u" + strconv.Itoa(w.names)), Ready: !w.chance(0.1),
		Labels: map[string]string{"env": "prod", "stage": []string{"a", "b", "none"}[w.rnd.IntN(3)], "wave": strconv.Itoa(w.rnd.IntN(3))},
	}}
	if w.chance(0.1) {
		c.Labels["env"], c.deselected = "dev", true
	}
	if w.ailing && w.storm && w.chance(0.2) {
		w.ails(&c)
	}
	c.flaky = w.ailing && w.chance(0.2)
	w.clusters = append(w.clusters, c)
	w.clustersAt = w.next()
	w.notef("%s joins: %s", c.Name, c.Labels["stage"])
}

// leave takes a cluster away, and what it was assigned with it.
func (w *world) leave(name string) {
	w.clusters = slices.DeleteFunc(w.clusters, func(c cluster) bool { return c.Name == name })
	delete(w.assemblages, name)
	w.oracle.gone(name)
	w.clustersAt, w.recordsAt = w.next(), w.next()
	w.notef("%s leaves", name)
}

// changed gives an assemblage a new version.
func (w *world) changed(name string, a assemblage, spec bool) {
	a.version = w.next()
	if spec {
		a.generation++
	}
	w.assemblages[name] = a
	w.recordsAt = a.version
}

// relabelled replaces the labels of a cluster, so that older views keep theirs.
func (w *world) relabelled(c *cluster, key, value string) {
	labels := maps.Clone(c.Labels)
	labels[key] = value
	c.Labels = labels
	w.clustersAt = w.next()
}

// shown are the clusters for which something stands on the hub.
func (w *world) shown() []cluster {
	return slices.DeleteFunc(slices.Clone(w.clusters), func(c cluster) bool { return c.hidden })
}

func (w *world) cluster(name string) *cluster {
	for i := range w.clusters {
		if w.clusters[i].Name == name {
			return &w.clusters[i]
		}
	}

	return nil
}

// commit is what the tag of a revision stands for now.
func (w *world) commit(revision string) string {
	return revision + "#" + strconv.Itoa(w.moved[revision])
}

// found is what a cluster tells that it has fetched, with the tag by which it knows it.
// Where no tag is named that is of no interest.
func (w *world) found(a *assemblage, commit string) string {
	switch {
	case !w.tagged:
		return ""
	case a.exact == "":
		return "tag@" + commit
	default:
		return commit
	}
}

// wants is the commit that a cluster is to fetch by what it is assigned.
func (w *world) wants(a *assemblage) string {
	if a.exact != "" {
		return a.exact
	}

	return w.commit(a.revision)
}

// isGood is true of a revision that works.
func (w *world) isGood(revision string) bool { return w.good[revision] }

// live is that clusters do their work.
func (w *world) live() {
	w.now = w.now.Add(w.seconds(1, 6))

	for i := range w.clusters {
		c := &w.clusters[i]
		if !w.storm || w.chance(w.keen) {
			w.lookAt(c)
			w.work(c)
		}
	}
}

// work carries out what a cluster is assigned, or goes on with it.
func (w *world) work(c *cluster) {
	a, ok := w.assemblages[c.Name]
	if !ok || !c.Ready || c.Unreachable || c.hidden {
		return
	}

	switch {
	case !a.assigned && a.found != nil: // it goes on with what it has, and is taken over first
	case a.assigned && c.suspended:
		if a.state != v1alpha1.StateWaiting || a.seen != a.generation || a.reported != a.revision || !a.reportOf.Equal(a.at) {
			a.reported, a.reportOf, a.state, a.since, a.seen = a.revision, a.at, v1alpha1.StateWaiting, w.now, a.generation
			w.changed(c.Name, a, false)
		}
	case a.assigned && a.state == v1alpha1.StateWaiting:
		a.state, a.since = v1alpha1.StateUpdating, w.now
		c.begun, c.takes, c.fetched = w.now, w.seconds(0, 20), w.wants(&a)
		w.changed(c.Name, a, false)
	case a.leaving:
		a.leaving, a.seen = false, a.generation
		w.changed(c.Name, a, false)
	case a.assigned && (a.reported != a.revision || !a.reportOf.Equal(a.at) || a.state == ""):
		a.reported, a.reportOf, a.state, a.since, a.seen = a.revision, a.at, v1alpha1.StateUpdating, w.now, a.generation
		c.begun, c.takes, c.fetched = w.now, w.seconds(0, 30), w.wants(&a)
		w.changed(c.Name, a, false)
	case a.seen != a.generation:
		a.seen = a.generation
		if a.assigned && c.fetched != w.wants(&a) { // who has seen what changed does not say what was before
			w.fetches(c, &a)
		} else if a.assigned && a.state == v1alpha1.StateSucceeded {
			a.resolved = w.found(&a, c.fetched)
		}
		w.changed(c.Name, a, false)
	case a.assigned && a.state == v1alpha1.StateUpdating && !w.now.Before(c.begun.Add(c.takes)):
		if c.flaky && !c.tried { // Flux tries again
			c.tried, c.begun, a.triedOnce = true, w.now, true
			w.changed(c.Name, a, false)
			w.count("failed tries")

			return
		}
		a.state, a.since, c.tried = v1alpha1.StateFailed, w.now, false
		if w.isGood(a.revision) && !c.sick {
			a.state, a.succeeded, a.proven, a.resolved = v1alpha1.StateSucceeded, a.revision, a.at, w.found(&a, c.fetched)
		}
		w.changed(c.Name, a, false)
		w.notef("%s: %s is %s", c.Name, a.revision, a.state)
	case a.assigned && c.fetched != w.wants(&a):
		w.fetches(c, &a)
		w.changed(c.Name, a, false)
	case a.assigned && w.storm && w.flaps && w.chance(0.02) && a.state == v1alpha1.StateSucceeded:
		a.state, a.since = v1alpha1.StateUpdating, w.now
		c.begun, c.takes = w.now, w.seconds(0, 20)
		w.changed(c.Name, a, false)
		w.notef("%s flaps", c.Name)
		w.count("flaps")
	}
}

// fetches has a cluster begin with another commit.
func (w *world) fetches(c *cluster, a *assemblage) {
	a.state, a.since = v1alpha1.StateUpdating, w.now
	c.begun, c.takes, c.fetched = w.now, w.seconds(0, 20), w.wants(a)
	w.notef("%s fetches %s", c.Name, c.fetched)
}

// isUp is true if a cluster runs what it is assigned, and is healthy.
func (w *world) isUp(name string) bool {
	c, a := w.cluster(name), w.assemblages[name]

	return c != nil && c.Ready && !c.Unreachable && !c.hidden && a.assigned && a.state == v1alpha1.StateSucceeded && a.reported == a.revision && a.reportOf.Equal(a.at)
}

// isSelected is true of a cluster that the module is for.
func (w *world) isSelected(c *model.Cluster) bool { return selects(&w.module.spec, c) }

// selects is true if a cluster has all the labels that a module selects.
func selects(spec *v1alpha1.ModuleSpec, c *model.Cluster) bool {
	for key, value := range spec.Selector.MatchLabels {
		if c.Labels[key] != value {
			return false
		}
	}

	return !c.Deleting
}

// namesOf are the names of a list of clusters.
func namesOf(clusters []string) string { return strings.Join(clusters, " ") }
