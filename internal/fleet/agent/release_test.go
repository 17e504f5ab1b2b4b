package agent

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// release does what Flux does with a HelmRelease: it is ready with the chart that its source has.
func (m *model) release(u *unstructured.Unstructured) {
	m.Helper()
	r := &helmv2.HelmRelease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
		m.Fatal(err)
	}
	r.UID = types.UID("uid of " + r.Name)
	if former := m.o.Releases[r.Name]; former != nil {
		r.Generation = former.Generation
		r.Spec.Suspend = former.Spec.Suspend && !strings.Contains(fmt.Sprint(u.Object["spec"]), "suspend:false")
	}
	r.Generation++
	revision := "artifact of " + r.Spec.ChartRef.Name
	r.Status = helmv2.HelmReleaseStatus{
		ObservedGeneration: r.Generation, LastAttemptedGeneration: r.Generation, LastAttemptedRevision: revision, LastAttemptedConfigDigest: "sha256:1",
		History:    helmv2.Snapshots{{Version: 1, Status: deployed, ChartVersion: revision, ConfigDigest: "sha256:1"}},
		Conditions: []metav1.Condition{{Type: meta.ReadyCondition, Status: "True", Reason: "UpgradeSucceeded", ObservedGeneration: r.Generation}},
	}
	reduceRelease(r) // as the cache does
	m.o.Releases[r.Name] = r
	for key, s := range m.o.Sources {
		s.Chart, s.Origin = key.Kind == sourcev1.HelmChartKind, s.Revision
	}
}

func chart(name, version, more string) string {
	return fmt.Sprintf("name: %s\nrevision: %s-%s\nsource: {helm: {url: 'https://charts.test', chart: x, version: %s}}\n%s", name, name, version, version, more)
}

// All versions come from one HelmRepository; each is a HelmChart of its own, and the HelmRelease changes last.
func TestAnotherVersionOfAChartIsAnotherHelmChart(t *testing.T) {
	m := newModel(t, chart("shop", "1.0.0", ""))
	first := m.settles()
	if len(first) != 4 || !strings.HasPrefix(first[1], "Apply HelmRepository shop-") || !strings.HasPrefix(first[2], "Apply HelmChart shop-") || first[3] != "Apply HelmRelease c1-shop" {
		t.Fatal(first)
	}
	m.wants(chart("shop", "1.1.0", "package: {helm: {values: {a: '$(CLUSTER_NAME)', b: 3, c: [{d: '$$1'}]}, spec: {releaseName: shop}}}"))
	m.o.Assemblage.Cluster = "eu"
	second := m.settles()
	if len(second) != 2 || !strings.HasPrefix(second[0], "Apply HelmChart shop-") || second[0] == first[2] || second[1] != "Apply HelmRelease c1-shop" {
		t.Fatal(second)
	}
	spec := m.o.Releases["c1-shop"].Spec
	m.expect(string(spec.Values.Raw), `{"a":"eu","b":3,"c":[{"d":"$1"}]}`)
	m.expect(spec.ReleaseName, "shop")
	m.expect(m.o.Assemblage.Status.Syncs[0].State, v1alpha1.StateSucceeded)
	m.wants()
	m.expect(m.settles(), []string{"Delete c1-shop"})
}

// That nothing is waited for is said once, to either kind.
func TestWhatIsFalseIsSaidOnce(t *testing.T) {
	m := newModel(t, chart("shop", "1.0.0", "wait: false"), git("app", "v1", "wait: false"))
	m.settles()
	m.expect(m.o.Releases["c1-shop"].Spec.Upgrade.DisableWait, true)
	m.expect(m.o.Kustomizations["c1-app"].Spec.Wait, false)
}

// What is to stay is said on the HelmRelease, which is suspended before it is deleted; one that is wanted again
// meanwhile is not.
func TestAReleaseThatIsToStayIsSuspendedFirst(t *testing.T) {
	orphan := chart("shop", "1.0.0", "deletionPolicy: Orphan")
	m := newModel(t, orphan)
	m.settles()
	m.expect(m.o.Assemblage.Status.Syncs[0].DeletionPolicy, v1alpha1.Orphan)
	m.wants()
	_, made := m.step()
	m.expect(made, []string{"Suspend c1-shop"})
	m.wants(orphan)
	m.expect(m.settles(), []string{"Apply HelmRelease c1-shop", "Apply HelmRelease c1-shop"}) // resumed, and then as ever
	m.expect(m.o.Releases["c1-shop"].Spec.Suspend, false)
	m.wants()
	m.expect(m.settles(), []string{"Suspend c1-shop", "Delete c1-shop"})
	m.wants(chart("shop", "1.0.0", ""))
	m.settles()
	m.o.Assemblage.Deleting, m.o.Assemblage.Abandoned = true, true
	made = nil
	for range 3 {
		_, now := m.step()
		made = append(made, now...)
	}
	m.expect(made[len(made)-2:], []string{"Delete c1-shop", "RemoveFinalizer"})
	if made[0] != "Orphan c1-shop" || made[1] != "Suspend c1-shop" {
		t.Error(made)
	}
}

// Flux has no dependency of one kind on the other: that is waited for here, and kept when both go.
func TestAChartDependsOnAKustomization(t *testing.T) {
	m := newModel(t, chart("shop", "1.0.0", "dependsOn: [base]"), git("base", "v1", ""))
	_, _ = m.step()
	p, made := m.step()
	if len(made) != 2 || made[1] != "Apply Kustomization c1-base" {
		t.Fatal(made)
	}
	m.expect(p.Status.Syncs[0].Message, "waiting for Kustomization c1-base to be ready")
	m.expect(p.Status.Syncs[0].Reason, string(outcome.ReasonDependency))
	m.settles()
	m.expect(m.o.Releases["c1-shop"].Annotations[vocabulary.AppliedAfter.Native], "Kustomization/c1-base")
	m.o.Kustomizations["c1-base"].Status.Conditions[0].Status = "False" // what runs already is not held
	m.expect(m.settles(), []string(nil))
	m.wants()
	_, made = m.step()
	m.expect(made, []string{"Delete c1-shop"})
}

// A sync that becomes a chart waits until what it was before is gone, and a cluster without helm-controller says so.
func TestOneKindAfterTheOther(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	m.wants(chart("shop", "1.0.0", ""))
	p, made := m.step()
	m.expect(made, []string{"Delete c1-shop"})
	m.expect(p.Status.Syncs[0].Reason, string(outcome.ReasonTerminating))
	m.o.HelmMissing = true
	p, _ = m.step()
	m.expect(p.Status.Syncs[0].Reason, string(outcome.ReasonHelmMissing))
	m.o.HelmMissing = false
	m.settles()
	if m.o.Releases["c1-shop"] == nil || m.o.Kustomizations["c1-shop"] != nil {
		t.Error("there is another one")
	}
}

// A branch or a range is fetched as it is said, and replaced by what it turned out to be without a word of change.
func TestWhatMovesIsReplacedByWhatItTurnedOutToBe(t *testing.T) {
	m := newModel(t, chart("shop", "1.x", ""))
	m.settles()
	for name := range m.o.Sources {
		if name.Kind == sourcev1.HelmChartKind {
			m.o.Sources[name].Revision, m.o.Sources[name].Origin = "1.2.0", "1.2.0"
		}
	}
	r := m.o.Releases["c1-shop"]
	r.Status.LastAttemptedRevision, r.Status.History[0].ChartVersion = "1.2.0", "1.2.0"
	m.step()
	if exact := m.o.Assemblage.Status.Syncs[0].Resolved; exact != "1.2.0" || m.o.Assemblage.Status.Syncs[0].State != v1alpha1.StateSucceeded {
		t.Fatalf("%+v", m.o.Assemblage.Status.Syncs[0])
	}
	revision := m.o.Assemblage.Syncs[0].Revision
	m.wants(strings.Replace(chart("shop", "1.2.0", ""), "shop-1.2.0", revision, 1))
	p, made := m.step()
	if len(made) != 1 || !strings.HasPrefix(made[0], "Apply HelmChart") || p.Status.Syncs[0].State != v1alpha1.StateSucceeded {
		t.Errorf("%v, %+v", made, p.Status.Syncs[0])
	}
	p, made = m.step()
	if len(made) != 1 || made[0] != "Apply HelmRelease c1-shop" || p.Status.Syncs[0].State != v1alpha1.StateSucceeded || !isRepointed(release{m.o.Releases["c1-shop"]}) {
		t.Errorf("%v, %+v", made, p.Status.Syncs[0])
	}
}

// What is said of a HelmRelease: a success rests on its condition, and on the release that Helm has.
func TestSettleARelease(t *testing.T) {
	good := func() *helmv2.HelmRelease {
		r := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns", Generation: 2}}
		r.Status = helmv2.HelmReleaseStatus{
			ObservedGeneration: 2, LastAttemptedGeneration: 2, LastAttemptedRevision: "1.1.0", LastAttemptedConfigDigest: "sha256:2",
			History:    helmv2.Snapshots{{Version: 2, Status: deployed, ChartVersion: "1.1.0", ConfigDigest: "sha256:2"}, {Version: 1, Status: "superseded", ChartVersion: "1.0.0"}},
			Conditions: []metav1.Condition{{Type: meta.ReadyCondition, Status: "True", Reason: "UpgradeSucceeded", ObservedGeneration: 2, Message: "flux says so"}},
		}
		return r
	}
	says := func(r *helmv2.HelmRelease, status metav1.ConditionStatus, reason string) {
		r.Status.Conditions[0].Status, r.Status.Conditions[0].Reason = status, reason
	}
	also := func(r *helmv2.HelmRelease, kind, reason string) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: "True", Reason: reason, ObservedGeneration: 2, Message: "flux tells which"})
	}
	for name, test := range map[string]struct {
		is   func(*helmv2.HelmRelease)
		was  v1alpha1.State
		want v1alpha1.State
	}{
		"deployed":                            {func(*helmv2.HelmRelease) {}, "", v1alpha1.StateSucceeded},
		"not observed":                        {func(r *helmv2.HelmRelease) { r.Status.Conditions[0].ObservedGeneration = 1 }, "", v1alpha1.StateUpdating},
		"ready, and not attempted":            {func(r *helmv2.HelmRelease) { r.Status.LastAttemptedGeneration = 1 }, "", v1alpha1.StateUpdating},
		"another version":                     {func(r *helmv2.HelmRelease) { r.Status.LastAttemptedRevision = "1.0.0" }, "", v1alpha1.StateUpdating},
		"the newest release is another chart": {func(r *helmv2.HelmRelease) { r.Status.History[0].ChartVersion = "1.0.0" }, "", v1alpha1.StateUpdating},
		"the newest release has other values": {func(r *helmv2.HelmRelease) { r.Status.History[0].ConfigDigest = "sha256:1" }, "", v1alpha1.StateUpdating},
		"the newest release failed":           {func(r *helmv2.HelmRelease) { r.Status.History[0].Status = "failed" }, "", v1alpha1.StateUpdating},
		"no release":                          {func(r *helmv2.HelmRelease) { r.Status.History = nil }, "", v1alpha1.StateUpdating},
		"failures since":                      {func(r *helmv2.HelmRelease) { r.Status.Failures = 1 }, "", v1alpha1.StateUpdating},
		"remediated":                          {func(r *helmv2.HelmRelease) { also(r, helmv2.RemediatedCondition, "RollbackSucceeded") }, "", v1alpha1.StateUpdating},
		"looked at again":                     {func(r *helmv2.HelmRelease) { says(r, "Unknown", "Progressing") }, v1alpha1.StateSucceeded, v1alpha1.StateSucceeded},
		"upgraded again":                      {func(r *helmv2.HelmRelease) { says(r, "Unknown", "Progressing"); r.Status.Failures = 1 }, v1alpha1.StateSucceeded, v1alpha1.StateUpdating},
		"failed once":                         {func(r *helmv2.HelmRelease) { says(r, "False", "UpgradeFailed") }, "", v1alpha1.StateUpdating},
		"rolled back once":                    {func(r *helmv2.HelmRelease) { says(r, "False", "RollbackSucceeded") }, "", v1alpha1.StateUpdating},
		"failed before":                       {func(r *helmv2.HelmRelease) { says(r, "False", "UpgradeFailed") }, v1alpha1.StateFailed, v1alpha1.StateFailed},
		"stalled":                             {func(r *helmv2.HelmRelease) { says(r, "False", "RetriesExceeded"); also(r, "Stalled", "x") }, "", v1alpha1.StateFailed},
		"rolled back and stalled":             {func(r *helmv2.HelmRelease) { says(r, "False", "RollbackSucceeded"); also(r, "Stalled", "x") }, "", v1alpha1.StateFailed},
		"no artifact":                         {func(r *helmv2.HelmRelease) { says(r, "False", "SourceNotReady") }, "", v1alpha1.StateUpdating},
		"waits for another":                   {func(r *helmv2.HelmRelease) { says(r, "False", helmv2.DependencyNotReadyReason) }, "", v1alpha1.StateWaiting},
		"drifted": {func(r *helmv2.HelmRelease) {
			also(r, helmv2.DriftedCondition, "DriftDetected")
			r.Spec.DriftDetection = &helmv2.DriftDetection{Mode: helmv2.DriftDetectionWarn}
		}, "", v1alpha1.StateSucceeded},
		"drift that is corrected": {func(r *helmv2.HelmRelease) {
			also(r, helmv2.DriftedCondition, "DriftDetected")
			r.Spec.DriftDetection = &helmv2.DriftDetection{Mode: helmv2.DriftDetectionEnabled}
		}, "", v1alpha1.StateSucceeded},
		"suspended": {func(r *helmv2.HelmRelease) { r.Spec.Suspend = true }, "", v1alpha1.StateWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			r.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: local.kind}}
			test.is(r)
			var was *v1alpha1.SyncStatus
			if test.was != "" {
				was = &v1alpha1.SyncStatus{State: test.was}
			}
			source := &Source{Generation: 1, ObservedGeneration: 1, Revision: "1.1.0", Chart: true, Origin: "v1@sha1:1"}
			whole := settle(&Observed{}, source, release{r}, was)
			reduceRelease(r)
			if got := settle(&Observed{}, source, release{r}, was); got != whole || got.state != test.want {
				t.Errorf("%+v, and of the whole of it %+v; want %s", got, whole, test.want)
			}
			if isDrifted := whole.reason == outcome.ReasonDrifted && whole.message == "flux tells which"; isDrifted != (name == "drifted") {
				t.Errorf("%+v", whole)
			}
			if whole.state == v1alpha1.StateSucceeded && whole.resolved != "v1@sha1:1" {
				t.Errorf("%+v", whole)
			}
		})
	}
}

// What was fetched from a registry has its digest, whose beginning is in the version of the chart.
func TestARevisionOfARegistry(t *testing.T) {
	r := release{&helmv2.HelmRelease{}}
	r.Status.History = helmv2.Snapshots{{Status: deployed, ChartVersion: "1.0.0+0123456789ab"}}
	r.Status.LastAttemptedRevision, r.Status.LastAttemptedRevisionDigest = "1.0.0+0123456789ab", "sha256:0123456789abcdef"
	for revision, want := range map[string]bool{
		"1.0.0@sha256:0123456789abcdef": true, "sha256:0123456789abcdef": true, "v1@sha1:0123456789abcdee": true, "sha256:1123456789abcdef": false, "1.0.0": false,
	} {
		if r.has(revision) != want {
			t.Errorf("%s: %v", revision, !want)
		}
	}
	for revision, want := range map[string]bool{"1.0.0@sha256:0123456789abcdef": true, "1.0.0@sha256:1123456789abcdef": false} {
		if r.runs(&Source{Revision: revision}) != want {
			t.Errorf("%s: %v", revision, !want)
		}
	}
}
