package config_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
)

// reloads has the manager of a world read the annotations of Reloader.
func reloads(w *world, change ...func(*reloader.Options)) {
	o := &reloader.Options{Since: w.clock.Now()}
	for _, c := range change {
		c(o)
	}
	w.options.Reloader = o
}

const (
	autoReload = "reloader.stakater.com/auto"
	listed     = "configmap.reloader.stakater.com/reload"
)

// foreign is a Deployment as charts have it that know Reloader, and not Spillway.
func foreign(name, podSpec string, annotations ...string) string {
	manifest := deployment(name, podSpec, annotations...)
	return replaceOnce(strings.Replace(manifest, waveTracked+`: "true", `, "", 1), "metadata: {name: "+name, "metadata: {labels: {app.kubernetes.io/managed-by: Helm}, name: "+name)
}

// rolledOnly fails unless the Deployments have had these numbers of ReplicaSets, once all has settled.
func (w *world) rolledOnly(rolls map[string]int) {
	w.t.Helper()
	w.settled()
	for name, n := range rolls {
		w.settledWith(name, n)
	}
}

// A chart that was rolled by Reloader is rolled by Spillway, and not touched: beginning restarts nothing, a change
// rolls each once, in stages, a bad Secret stops at the first one, and the correction rolls only that.
func TestAChartOfReloadersUsers(t *testing.T) {
	w := newWorld(t)
	reloads(w)
	k := startKubelets(w)
	w.secret("db", "p", "good")
	w.policy("careful", oneFirst)
	names := []string{"app1", "app2", "app3"}
	for _, name := range names {
		w.apply(still(foreign(name, envFrom(secretRef("db")), autoReload, "true")))
		w.settledWith(name, 1)
	}
	w.manage()
	for _, name := range names {
		w.hashed(name, "")
	}
	w.rolledOnly(map[string]int{"app1": 1, "app2": 1, "app3": 1})
	w.rests(func() { w.ready(names...) })

	w.secret("db", "p", "better")
	w.rolledOnly(map[string]int{"app1": 2, "app2": 2, "app3": 2})
	w.ready(names...)

	w.secret("db", "p", "bad")
	w.stopped("app1", "app2", "app3")
	if ran := k.ranWith("bad"); fmt.Sprint(ran) != "[app1]" {
		t.Errorf("%v ran the bad value", ran)
	}
	w.settled()
	for name, n := range map[string]int{"app1": 3, "app2": 2, "app3": 2} {
		if err := want(n, w.replicaSets(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	w.secret("db", "p", "better")
	w.ready(names...)
	w.rests(func() {
		if err := errors.Join(want(2, w.replicaSets("app2")), want(2, w.replicaSets("app3"))); err != nil {
			t.Error(err)
		}
	})
}

// Who keeps its config gets it back: the policy asks for that, not the chart.
func TestAChartOfReloadersUsersGetsItsConfigBack(t *testing.T) {
	w := newWorld(t)
	reloads(w)
	pinnable(w)
	startKubelets(w)
	w.secret("db", "p", "good")
	w.policy("careful", "{pinConfig: true, onFailure: Rollback}")
	w.apply(still(foreign("app", envFrom(secretRef("db")), autoReload, "true")))
	w.manage()
	first := w.pinnedAgain("Deployment", "app", "")
	w.readyWith("app", snapshotOf(t, first), 1)
	w.secret("db", "p", "bad")
	w.isBack("Deployment", "app", first)
	w.readyWith("app", snapshotOf(t, first), 1)
}

// What counts is what counts for Reloader: all keys of what a container reads, and what a list names.
func TestWhatRollsForReloadersAnnotations(t *testing.T) {
	w := newWorld(t)
	reloads(w)
	for _, name := range []string{"app", "other", "marked", "lists-one"} {
		w.configMap(name, "a", "1")
	}
	one := "containers:\n- name: c\n  image: x\n  env: [{name: A, valueFrom: {configMapKeyRef: {name: app, key: a}}}]"
	w.apply(
		foreign("auto", one, autoReload, "true"),
		foreign("lists", one, listed, "other, lists-.*"),
		foreign("searches", envFrom(configMapRef("app"), configMapRef("marked")), "reloader.stakater.com/search", "true"),
		foreign("excludes", envFrom(configMapRef("app"), configMapRef("marked")), autoReload, "true", "configmaps.exclude.reloader.stakater.com/reload", "app"),
		foreign("refuses", one, autoReload, "false"),
		replaceOnce(foreign("template", one, "x", "y"), "metadata: {labels: {app: template}}", `metadata: {labels: {app: template}, annotations: {`+autoReload+`: "true"}}`),
	)
	w.patch(&corev1.ConfigMap{}, "marked", `{"metadata":{"annotations":{"reloader.stakater.com/match":"true"}}}`)
	w.manage()
	rolls := map[string]int{"auto": 1, "lists": 1, "searches": 1, "excludes": 1, "refuses": 1, "template": 1}
	for _, name := range []string{"auto", "lists", "searches", "excludes", "template"} {
		w.hashed(name, "")
	}
	w.rolledOnly(rolls)
	for _, step := range []struct {
		object, key, value string
		rolls              []string
	}{
		{"app", "a", "2", []string{"auto", "template"}},
		{"app", "b", "not read", []string{"auto", "template"}},
		{"other", "a", "2", []string{"lists"}},
		{"lists-one", "a", "2", []string{"lists"}},
		{"marked", "a", "2", []string{"searches", "excludes"}},
	} {
		w.patch(&corev1.ConfigMap{}, step.object, fmt.Sprintf(`{"data":{%q:%q}}`, step.key, step.value))
		for _, name := range step.rolls {
			rolls[name]++
		}
		w.rolledOnly(rolls)
	}
	w.rests(func() {})
}

// That other objects count rolls nothing: annotations are edited, objects appear and go. What is edited then does.
func TestWhatOnlyCountsNowRollsNothing(t *testing.T) {
	w := newWorld(t)
	reloads(w)
	w.configMap("app", "a", "1")
	optional := "configMapRef: {name: later, optional: true}"
	w.apply(foreign("web", envFrom(configMapRef("app"), optional), autoReload, "true", listed, "more.*"))
	w.manage()
	w.hashed("web", "")
	rolls := map[string]int{"web": 1}
	for _, step := range []struct {
		name  string
		do    func()
		rolls int
	}{
		{"an optional object appears", func() { w.configMap("later", "a", "1") }, 0},
		{"and is edited", func() { w.configMap("later", "a", "2") }, 1},
		{"and goes", func() { w.remove(&corev1.ConfigMap{}, "later") }, 0},
		{"one that a list names appears", func() { w.configMap("more-1", "a", "1") }, 0},
		{"and is edited", func() { w.configMap("more-1", "a", "2") }, 1},
		{"it is ignored", func() {
			w.patch(&corev1.ConfigMap{}, "more-1", `{"metadata":{"annotations":{"reloader.stakater.com/ignore":"true"}}}`)
		}, 0},
		{"and edited", func() { w.configMap("more-1", "a", "3") }, 0},
		{"the annotations ask for less", func() { w.annotate("web", listed, "-") }, 0},
		{"what still counts is edited", func() { w.configMap("app", "a", "2") }, 1},
		{"the annotations ask for more", func() { w.annotate("web", listed, "app,web") }, 0},
		{"the native annotation takes over", func() { w.annotate("web", autoReload, "-", listed, "-", native+"update-on-config-change", "true") }, 0},
		{"and rolls", func() { w.configMap("app", "a", "3") }, 1},
		{"and ends", func() { w.annotate("web", autoReload, "true", native+"update-on-config-change", "-") }, 0},
		{"and what counts is edited", func() { w.configMap("app", "a", "4") }, 1},
	} {
		step.do()
		rolls["web"] += step.rolls
		w.rolledOnly(rolls)
		if t.Failed() {
			t.Fatal(step.name)
		}
	}
	w.rests(func() {})
}

// The flags that say so have it rolled for what appears and goes.
func TestReloadOnCreateAndDelete(t *testing.T) {
	w := newWorld(t)
	reloads(w, func(o *reloader.Options) { o.OnCreate, o.OnDelete, o.AutoAll = true, true, true })
	w.configMap("app", "a", "1")
	w.apply(foreign("web", envFrom(configMapRef("app"), "configMapRef: {name: later, optional: true}"), "x", "y"), foreign("bare", "containers: [{name: c, image: x}]", "x", "y"))
	w.manage()
	w.hashed("web", "")
	w.configMap("later", "a", "1")
	w.settledWith("web", 2)
	w.remove(&corev1.ConfigMap{}, "later")
	w.settledWith("web", 3)
	w.rests(func() {
		if w.adopted("bare").Scope != "" {
			t.Error("a workload that reads nothing is written")
		}
	})
}

// A change that is made while no manager runs is rolled by the next one; what appeared meanwhile is not.
func TestNothingIsLostForReloadersAnnotations(t *testing.T) {
	w := newWorld(t)
	reloads(w)
	w.configMap("app", "a", "1")
	w.apply(foreign("web", envFrom(configMapRef("app")), autoReload, "true", listed, ".*"), foreign("other", envFrom(configMapRef("app")), listed, "more"))
	w.manage()
	w.hashed("web", "")
	w.hashed("other", "")
	w.settled()
	w.halt()
	w.configMap("app", "a", "2")
	w.configMap("more", "a", "1")
	reloads(w) // it begins later
	w.manage()
	w.rolledOnly(map[string]int{"web": 2, "other": 1})
	w.rests(func() {})
}

// What is edited after the opt-in is rolled, also if the manager has recorded nothing before: the Pods run with what
// was before. What could not start yet, because its config was missing, is not rolled again once that exists.
func TestWhatIsEditedAfterReloadersAnnotation(t *testing.T) {
	w := newWorld(t)
	w.options.Reloader = &reloader.Options{} // it began long ago
	w.configMap("app", "a", "0")
	w.apply(foreign("web", envFrom(configMapRef("app")), autoReload, "true"), foreign("waits", envFrom(configMapRef("missing")), autoReload, "true"))
	w.settledWith("web", 1)
	value := 0
	w.eventually(func() error { // in another second than that of the workload
		value++
		w.configMap("app", "a", fmt.Sprint(value))
		app := &corev1.ConfigMap{}
		if err := w.get(app, "app"); err != nil {
			return err
		}
		return want(true, app.ManagedFields[0].Time.After(w.deploymentNow("web").CreationTimestamp.Time))
	})
	w.manage()
	w.settledWith("web", 2)
	w.saysEventually("waits", "ConfigMap missing not found")
	w.configMap("missing", "a", "1")
	w.hashed("waits", "")
	w.rolledOnly(map[string]int{"web": 2, "waits": 1})
	w.rests(func() {})
}

// Mistakes are named, with the annotation and the value, also where nothing else concerns Spillway.
func TestMistakesOfReloadersUsers(t *testing.T) {
	w := newWorld(t)
	reloads(w)
	w.configMap("app", "a", "1")
	w.apply(
		foreign("web", envFrom(configMapRef("app")), autoReload, "true", listed, "app-(,x", "reloader.stakater.com/search", "true"),
		foreign("mistyped", envFrom(configMapRef("app")), "reloader.stakater.com/autos", "true"),
	)
	w.manage()
	for name, says := range map[string]string{
		"web":      `annotation configmap.reloader.stakater.com/reload: invalid value \"app-(\": must be a name or a regular expression; ignoring it; annotation reloader.stakater.com/search: invalid value \"true\": reloader.stakater.com/auto is true, and counts`,
		"mistyped": `annotation reloader.stakater.com/autos: invalid value \"true\": no annotation of Reloader 1.4 has this name`,
	} {
		w.saysEventually(name, says)
	}
	w.eventually(func() error { return want(2, len(w.events("InvalidAnnotation"))) })
	if e := w.explain("mistyped"); e.State != config.StateNotTracked || len(e.Problems) != 1 {
		t.Errorf("it is %s: %q", e.State, e.Problems)
	}
	w.annotate("mistyped", "reloader.stakater.com/autos", "-")
	w.eventually(func() error { return want("", w.condition("mistyped")) })
	w.rolledOnly(map[string]int{"web": 1, "mistyped": 1})
}

// The period of a pause begins with the first change, and no further one extends it; a manager that begins knows it,
// also of an object of which the API server knows no edit.
func TestThePausePeriodOfReloader(t *testing.T) {
	edit := func(w *world) { w.configMap("app", "a", "2") }
	collects := func(w *world) {
		w.t.Helper()
		w.settled()
		if e := w.explain("web"); e.Reason != "Coalescing" || !strings.HasSuffix(e.Sentence, "changes within 10m0s of the first become one roll") {
			w.t.Errorf("it is %s: %s", e.Reason, e.Sentence)
		}
	}
	for name, change := range map[string][]func(*world){
		"edited":        {edit, collects, (*world).halt},
		"created again": {(*world).halt, func(w *world) { w.remove(&corev1.ConfigMap{}, "app") }, edit},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			reloads(w)
			w.configMap("app", "a", "1")
			w.apply(foreign("web", envFrom(configMapRef("app")), autoReload, "true", "deployment.reloader.stakater.com/pause-period", "10m"))
			w.manage()
			w.settled()
			for _, do := range change {
				do(w)
			}
			reloads(w)
			w.manage()
			collects(w)
			w.barrier.Step(t, 9*time.Minute)
			w.configMap("app", "a", "3")
			w.rolledOnly(map[string]int{"web": 1})
			w.barrier.Step(t, 2*time.Minute)
			w.rolledOnly(map[string]int{"web": 2})
		})
	}
}

// Namespaces and objects that flags leave out roll nothing.
func TestFlagsOfReloader(t *testing.T) {
	w := newWorld(t)
	reloads(w, func(o *reloader.Options) {
		o.Selector = labels.SelectorFromSet(labels.Set{"rolls": "yes"})
		o.Names = map[string]string{autoReload: "example.com/roll"}
	})
	w.configMap("app", "a", "1")
	w.configMap("rolls", "a", "1")
	w.patch(&corev1.ConfigMap{}, "rolls", `{"metadata":{"labels":{"rolls":"yes"}}}`)
	w.apply(foreign("web", envFrom(configMapRef("app"), configMapRef("rolls")), "example.com/roll", "true"))
	w.manage()
	w.hashed("web", "")
	w.configMap("app", "a", "2")
	w.rolledOnly(map[string]int{"web": 1})
	w.patch(&corev1.ConfigMap{}, "rolls", `{"data":{"a":"2"}}`)
	w.rolledOnly(map[string]int{"web": 2})
	w.patch(&corev1.ConfigMap{}, "app", `{"metadata":{"labels":{"rolls":"yes"}}}`)
	w.rolledOnly(map[string]int{"web": 2})
	w.patch(&corev1.ConfigMap{}, "app", `{"data":{"a":"3"}}`)
	w.rolledOnly(map[string]int{"web": 3})
}

// Without the flag the annotations cost nothing: the manager asks for what it asked for before.
func TestReloadersAnnotationsCostNothingWithoutTheFlag(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	w.apply(foreign("web", envFrom(configMapRef("app")), autoReload, "true", listed, ".*"))
	w.manage()
	w.settled()
	asked := w.requests.take()
	slices.Sort(asked)

	other := newWorldNow(t)
	other.configMap("app", "a", "1")
	other.apply(foreign("web", envFrom(configMapRef("app")), "x", "y"))
	other.manage()
	other.settled()
	plain := other.requests.take()
	slices.Sort(plain)
	for i := range plain {
		plain[i] = strings.ReplaceAll(plain[i], other.namespace, w.namespace)
	}
	if err := want(strings.Join(plain, "\n"), strings.Join(asked, "\n")); err != nil {
		t.Error(err)
	}
	w.silent(func() { w.configMap("app", "a", "2") })
	if e := w.explain("web"); e.State != config.StateNotTracked {
		t.Errorf("it is %s", e.State)
	}
}

// With a selector of namespaces, annotations count where the labels of the namespace match. A namespace that gets
// them later is read from then on, and rolls nothing for what was edited before.
func TestNamespacesThatAreSelected(t *testing.T) {
	w := newWorld(t)
	reloads(w, func(o *reloader.Options) {
		o.Namespaces = &reloader.Selected{Selector: labels.SelectorFromSet(labels.Set{"pins-of-" + w.namespace: "on"})}
	})
	w.options.CoalesceWindow = 0
	w.secret("db", "p", "1")
	w.apply(foreign("app", envFrom(secretRef("db")), autoReload, "true"))
	w.settledWith("app", 1)
	w.manage()
	w.barrier.Wait(t)
	w.secret("db", "p", "2")
	w.rolledOnly(map[string]int{"app": 1})
	if got := w.hash("app"); got != "" {
		t.Errorf("a workload of another namespace has the hash %s", got)
	}
	w.label("on")
	w.rolledOnly(map[string]int{"app": 1})
	w.secret("db", "p", "3")
	w.rolledOnly(map[string]int{"app": 2})
	for name, reader := range map[string]client.Client{"one who reads namespaces": w.client, "one who does not": w.viewer()} {
		of := *w.options.Reloader
		of.Namespaces = &reloader.Selected{Selector: of.Namespaces.Selector}
		options := w.options
		options.Reloader = &of
		e, err := config.Explain(t.Context(), reader, options, workloads.Name{Kind: "Deployment", Namespace: w.namespace, Name: "app"})
		if err != nil || e.State != config.StateUpToDate {
			t.Errorf("%s sees %s, %v", name, e.State, err)
		}
	}
	w.label("off")
	w.barrier.Wait(t)
	w.secret("db", "p", "4")
	w.rolledOnly(map[string]int{"app": 2})
}

// Dashboards, alerts and scripts that were made for Reloader see rolls by its names, with the flag.
func TestRollsByTheNamesOfReloader(t *testing.T) {
	w := newWorld(t)
	reloads(w)
	w.options.ReloaderMetrics, w.options.CoalesceWindow = true, 0
	w.secret("db", "p", "1")
	w.apply(foreign("app", envFrom(secretRef("db")), autoReload, "true"), deployment("native", envFrom(secretRef("db"))))
	w.settledWith("app", 1)
	w.manage()
	w.settled()
	w.secret("db", "p", "2")
	w.settled()
	w.settledWith("app", 2)
	if reloaded := w.events("Reloaded"); len(reloaded) != 1 || reloaded[0].InvolvedObject.Name != "app" || !strings.Contains(reloaded[0].Message, "Deployment app was rolled: Secret db") {
		t.Errorf("Events %+v", reloaded)
	}
	families, err := controllerruntime.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			of := f.GetName()
			for _, l := range m.GetLabel() {
				of += " " + strings.ReplaceAll(l.GetValue(), w.namespace, "here")
			}
			found[of] = m.GetCounter().GetValue()
		}
	}
	if found["reloader_reload_executed_total_by_namespace here true"] != 1 || found["reloader_reload_executed_total true"] < 1 {
		t.Errorf("%v", found)
	}
	if failed, shown := found["reloader_reload_executed_total false"]; !shown || failed != 0 {
		t.Errorf("%v writes have failed, shown: %v", failed, shown)
	}
}

// What was edited after Reloader had stopped, and before the manager ran, is rolled once: Reloader has recorded what it
// rolled for. What runs with the present content is not rolled.
func TestWhatReloaderHasMissed(t *testing.T) {
	w := newWorld(t)
	reloads(w)
	w.secret("db", "a", "1", "b", "2")
	const (
		now     = "7db861b5f6b5272224f7cc5e03e8f31d6a2b6fb79ae21b996cdae72457dc886d"
		earlier = "00000000000000000000"
	)
	variable := func(value string) string {
		return "\n  env: [{name: STAKATER_DB_SECRET, value: '" + value + "'}]"
	}
	names := map[string]int{"same": 1, "missed": 2, "never": 1}
	w.apply(
		foreign("same", envFrom(secretRef("db"))+variable(now), autoReload, "true"),
		foreign("missed", envFrom(secretRef("db"))+variable(earlier), autoReload, "true"),
		foreign("never", envFrom(secretRef("db")), autoReload, "true"),
	)
	for name := range names {
		w.settledWith(name, 1)
	}
	w.manage()
	w.hashed("missed", "")
	w.rolledOnly(names)
	w.rests(func() {})
	w.secret("db", "a", "1", "b", "3")
	w.hashed("same", w.hash("same"))
	w.rolledOnly(map[string]int{"same": 2, "missed": 3, "never": 2})
}
