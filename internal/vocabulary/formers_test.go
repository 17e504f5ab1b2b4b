package vocabulary_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

// row shows that a name of a former program does what its counterpart is said to do.
type row struct {
	// has reports whether the code that decides has read it, of an object that has the name with a value.
	has func(name string) bool
	// test is another test that shows it, as FOLDER TEST, and says what that test must mention, the name itself if it is empty.
	test, says string
}

// TestEachNameOfAFormerProgram has a row for each annotation, label and other name on objects.
func TestEachNameOfAFormerProgram(t *testing.T) {
	t.Parallel()
	rows := map[string]map[string]row{"wave": waveRows(), "reloader": reloaderRows(), "rollout-operator": rolloutOperatorRows(), "kudo": kudoRows()}
	for _, f := range vocabulary.Formers() {
		known := map[string]bool{}
		for _, k := range f.Keys {
			t.Run(f.Name+" "+k.Name, func(t *testing.T) {
				t.Parallel()
				r, ok := rows[f.Name][k.Name]
				switch {
				case !ok:
					t.Error("no row shows what it does")
				case k.Place == "" && k.Flag == "" || k.Instead == "":
					t.Errorf("nothing is said of it: %+v", k)
				case r.has != nil && !r.has(k.Name):
					t.Error("it is not read")
				case r.test != "":
					r.find(t, k.Name)
				}
			})
			known[k.Name] = true
		}
		for name := range rows[f.Name] {
			if !known[name] {
				t.Errorf("%s %s has a row, and is not among the names", f.Name, name)
			}
		}
	}
}

// find fails unless the test exists, and mentions the name.
func (r *row) find(t *testing.T, name string) {
	t.Helper()
	folder, test, _ := strings.Cut(r.test, " ")
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != test {
				continue
			}
			if body := string(text[set.Position(f.Pos()).Offset:set.Position(f.End()).Offset]); !strings.Contains(body, cmp.Or(r.says, name)) {
				t.Errorf("%s does not mention it", r.test)
			}
			return
		}
	}
	t.Errorf("there is no %s", r.test)
}

func deployment(annotations map[string]string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: annotations}}
	for _, c := range change {
		c(d)
	}
	return d
}

func waveRows() map[string]row {
	names := func(kind content.Kind) func(string) bool {
		return func(name string) bool {
			extra := workload.Read(deployment(map[string]string{"wave.pusher.com/update-on-config-change": "true", name: "db, other/cache"})).Settings.Extra
			return len(extra) == 2 && extra[0].Object == content.Object{Kind: kind, Namespace: "shop", Name: "db"} && extra[1].Object.Namespace == "other" && !extra[0].Required
		}
	}
	suspended := func(annotations map[string]string) workload.Suspension {
		return workload.SuspensionOf(deployment(annotations, func(d *appsv1.Deployment) { d.Spec.Template.Spec.SchedulerName = "wave.pusher.com/invalid" }))
	}
	return map[string]row{
		"wave.pusher.com/update-on-config-change": {has: func(name string) bool {
			on, off := workload.Read(deployment(map[string]string{name: "true"})), workload.Read(deployment(map[string]string{name: "1"}))
			return on.Settings.Tracked && on.Settings.Dialect == name && on.Template.HashName == "wave.pusher.com/config-hash" && !off.Settings.Tracked
		}},
		"wave.pusher.com/extra-configmaps": {has: names(content.ConfigMap)},
		"wave.pusher.com/extra-secrets":    {has: names(content.Secret)},
		"wave.pusher.com/config-hash": {has: func(name string) bool {
			w := workload.Read(deployment(nil, func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{name: "abc"} }))
			return w.Template.Hash == "abc"
		}},
		"wave.pusher.com/scheduling-disabled": {has: func(name string) bool {
			return suspended(map[string]string{name: "mine"}).Restore == "mine"
		}},
		"wave.pusher.com/invalid": {has: func(string) bool {
			s := suspended(nil)
			return s.IsSuspended() && s.Restore == "default-scheduler"
		}},
		"wave.pusher.com/finalizer": {has: func(name string) bool {
			w := workload.Read(deployment(nil, func(d *appsv1.Deployment) { d.Finalizers = []string{name} }))
			return w.Legacy.Finalizer
		}},
	}
}

// pod mounts the ConfigMap app and reads the Secret app; what the driver mounts is of class app.
func pod() *corev1.PodSpec {
	class := &corev1.CSIVolumeSource{Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": "app"}}
	return &corev1.PodSpec{
		Containers: []corev1.Container{{
			Name:         "c",
			EnvFrom:      []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}}, {ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "class", MountPath: "/class"}},
		}},
		Volumes: []corev1.Volume{{Name: "class", VolumeSource: corev1.VolumeSource{CSI: class}}},
	}
}

func reloaderRows() map[string]row {
	const all = "reloader.stakater.com/auto"
	o := &reloader.Options{Classes: true}
	wants := func(annotations map[string]string) reloader.Wants {
		return o.Read(reloader.Workload{Kind: "Deployment", Annotations: annotations, Pod: pod()})
	}
	// rolls reports whether annotations have a change of an object roll the workload, and nothing else of the name does.
	rolls := func(kind content.Kind, of string, annotations map[string]string) bool {
		w := wants(annotations)
		return w.RolledBy(kind, of, reloader.Plain) && !w.RolledBy(kind, "unrelated", reloader.Plain)
	}
	auto := func(kind content.Kind) row {
		return row{has: func(name string) bool { return rolls(kind, "app", map[string]string{name: "t"}) }}
	}
	list := func(kind content.Kind) row {
		return row{has: func(name string) bool { return rolls(kind, "other", map[string]string{name: "x, oth.*"}) }}
	}
	exclude := func(kind content.Kind) row {
		return row{has: func(name string) bool {
			return rolls(kind, "app", map[string]string{all: "true"}) && !rolls(kind, "app", map[string]string{all: "true", name: "app"})
		}}
	}
	marked := func(trigger map[string]string, mark map[string]string) bool {
		w := wants(trigger)
		return w.RolledBy(content.ConfigMap, "app", o.MarkOf(mark, mark))
	}
	const search, match = "reloader.stakater.com/search", "reloader.stakater.com/match"
	return map[string]row{
		all:                                    auto(content.Secret),
		"configmap.reloader.stakater.com/auto": auto(content.ConfigMap),
		"secret.reloader.stakater.com/auto":    auto(content.Secret),
		"secretproviderclass.reloader.stakater.com/auto":             auto(content.SecretProviderClass),
		"configmap.reloader.stakater.com/reload":                     list(content.ConfigMap),
		"secret.reloader.stakater.com/reload":                        list(content.Secret),
		"secretproviderclass.reloader.stakater.com/reload":           list(content.SecretProviderClass),
		"configmaps.exclude.reloader.stakater.com/reload":            exclude(content.ConfigMap),
		"secrets.exclude.reloader.stakater.com/reload":               exclude(content.Secret),
		"secretproviderclasses.exclude.reloader.stakater.com/reload": exclude(content.SecretProviderClass),
		search: {has: func(name string) bool {
			return marked(map[string]string{name: "true"}, map[string]string{match: "true"}) && !marked(map[string]string{name: "true"}, nil)
		}},
		match: {has: func(name string) bool {
			return marked(map[string]string{search: "true"}, map[string]string{name: "true"}) && !marked(map[string]string{search: "true"}, map[string]string{name: "1"})
		}},
		"reloader.stakater.com/ignore": {has: func(name string) bool {
			return marked(map[string]string{all: "true"}, nil) && !marked(map[string]string{all: "true"}, map[string]string{name: "true"})
		}},
		"deployment.reloader.stakater.com/pause-period": {has: func(name string) bool {
			return wants(map[string]string{all: "true", name: "5m"}).Delay == 5*time.Minute
		}},
		"deployment.reloader.stakater.com/paused-at": {has: func(name string) bool {
			return strings.HasPrefix(workload.KeptBy(deployment(map[string]string{name: "x"})), "Reloader has paused")
		}},
		"reloader.stakater.com/rollout-strategy":   {test: "internal/config/reloader TestProblems", says: "…/rollout-strategy"},
		"reloader.stakater.com/last-reloaded-from": {test: "internal/config/reloader TestMissed"},
	}
}

func rolloutOperatorRows() map[string]row {
	// scales reads a StatefulSet with an annotation and a label of the name, and those that it needs.
	scales := func(read func(*scaling.Settings) bool, value string, with map[string]string) row {
		return row{has: func(name string) bool {
			annotations := map[string]string{name: value}
			maps.Copy(annotations, with)
			s := scaling.SettingsOf(map[string]string{name: value}, annotations)
			return len(s.Problems) == 0 && read(&s)
		}}
	}
	asks := func(name string, other map[string]string) bool {
		labels := map[string]string{name: "true"}
		if other == nil {
			labels = map[string]string{"grafana.com/inject-rollout-operator-ca": "true", name: "mimir"}
		}
		maps.Copy(labels, other)
		r := admission.Registered{Object: &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Labels: labels}}}
		return r.AsksFor("mimir") && !r.AsksFor("loki")
	}
	prepares := func(path, port string) string {
		e, missing := preparehook.EndpointOf(&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"grafana.com/prepare-downscale": "true"}, Annotations: map[string]string{path: "prepare", port: "8080"}},
			Spec:       appsv1.StatefulSetSpec{ServiceName: "s"},
		})
		return e.URL.String() + missing
	}
	proposed := row{has: func(name string) bool {
		found := vocabulary.IgnoredOn("StatefulSet", nil, map[string]string{name: "x"})
		return len(found) == 1 && found[0].Name == name && found[0].Instead != ""
	}}
	const (
		mirror = "grafana.com/rollout-mirror-replicas-from-resource-"
		delay  = "grafana.com/rollout-delayed-downscale"
		at     = "grafana.com/rollout-prepare-delayed-downscale-url"
		path   = "grafana.com/prepare-downscale-http-path"
		port   = "grafana.com/prepare-downscale-http-port"
	)
	mirrors := map[string]string{mirror + "name": "from", mirror + "kind": "ReplicaTemplate"}
	mirrored := func(s *scaling.Settings) bool { return s.Mirror != nil && s.Mirror.String() == "ReplicaTemplate from" }
	delayed := func(s *scaling.Settings) bool {
		return s.Delay != nil && s.Delay.For == 24*time.Hour && s.Delay.URL.Path == "/p"
	}
	delays := map[string]string{delay: "1d", at: "http://pod:80/p"}
	return map[string]row{
		"rollout-group": {has: func(name string) bool {
			return vocabulary.GroupOf(map[string]string{name: "ingester"}, nil) == "ingester"
		}},
		"rollout-max-unavailable": {has: func(name string) bool {
			return decision.SettingsOf("x", map[string]string{name: " 25% "}).MaxUnavailable.Of(8) == 2 && len(decision.SettingsOf("x", map[string]string{name: "no"}).Problems) == 1
		}},
		"grafana.com/rollout-paused":    {has: func(name string) bool { return decision.SettingsOf("x", map[string]string{name: "true"}).Paused }},
		"grafana.com/no-downscale":      {test: "internal/zones/guard TestNoDownscale"},
		"grafana.com/prepare-downscale": scales(func(s *scaling.Settings) bool { return s.Prepares }, "true", nil),
		path:                            {has: func(name string) bool { return prepares(name, port) == "http://:8080/prepare" }},
		port:                            {has: func(name string) bool { return prepares(path, name) == "http://:8080/prepare" }},
		"grafana.com/min-time-between-zones-downscale": {has: func(name string) bool {
			s := lock.MinTimeOf(map[string]string{name: "12h"}, nil)
			return s.Is == 12*time.Hour && s.IsLabel
		}},
		"grafana.com/last-downscale": {has: func(name string) bool {
			return lock.NotedDownscale(map[string]string{name: "2026-05-04T12:00:00Z"}).Is.Equal(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))
		}},
		"grafana.com/rollout-downscale-leader":               scales(func(s *scaling.Settings) bool { return s.Leader == "zone-a" }, "zone-a", nil),
		"grafana.com/rollout-upscale-only-when-leader-ready": scales(func(s *scaling.Settings) bool { return s.OnlyWhenLeaderReady }, "true", nil),
		"grafana.com/rollout-force-replicas":                 scales(func(s *scaling.Settings) bool { return s.Force != nil && *s.Force == 3 }, "3", nil),
		mirror + "name":                                      scales(mirrored, "from", mirrors),
		mirror + "kind":                                      scales(mirrored, "ReplicaTemplate", mirrors),
		mirror + "api-version":                               scales(func(s *scaling.Settings) bool { return s.Mirror != nil && s.Mirror.Kind.Group == "apps" }, "apps/v1", mirrors),
		mirror + "write-back":                                scales(func(s *scaling.Settings) bool { return s.Mirror != nil && !s.Mirror.WriteBack }, "false", mirrors),
		delay:                                                scales(delayed, "1d", delays),
		at:                                                   scales(delayed, "http://pod:80/p", delays),
		"grafana.com/inject-rollout-operator-ca":             {has: func(name string) bool { return asks(name, map[string]string{"grafana.com/namespace": "mimir"}) }},
		"grafana.com/namespace":                              {has: func(name string) bool { return asks(name, nil) }},
		"name":                                               {test: "internal/zones TestDefect3PodsBelongByTheUIDOfTheirOwner", says: `{"name": "ingester"}`},
		"grafana.com/ready-time":                             {test: "internal/zones/guard TestCrossZoneEvictionDelay", says: "CrossZoneEvictionDelay"},
		"grafana.com/rollout-canary":                         proposed,
		"grafana.com/rollout-revision":                       proposed,
		"grafana.com/rollout-bypass-until":                   proposed,
		"grafana.com/rollout-health-check":                   proposed,
	}
}

func kudoRows() map[string]row {
	applied := row{test: "internal/plans/decision TestApply"}
	return map[string]row{
		"heritage": applied, "kudo.dev/operator": applied, "kudo.dev/instance": applied, "kudo.dev/operator-version": applied,
		"kudo.dev/plan": applied, "kudo.dev/phase": applied, "kudo.dev/step": applied, "kudo.dev/last-plan-execution-uid": applied,
		"kudo.dev/dependencies-hash":           {test: "internal/plans/task TestChangingOverReplacesNoPod"},
		"kudo.dev/skip-hash-calculation":       {test: "internal/config/content TestWhatKUDOSkipsIsIgnored"},
		"kudo.dev/last-applied-configuration":  {test: "internal/plans/task TestTakeOver", says: "vocabulary.LastAppliedConfiguration"},
		"kudo.dev/last-applied-instance-state": {test: "internal/plans/decision TestAdopted", says: "vocabulary.LastAppliedInstanceState"},
		"kudo.dev.instance.cleanup":            {test: "internal/plans/decision TestCleanup", says: "Finalizers"},
	}
}
