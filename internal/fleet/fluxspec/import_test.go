package fluxspec_test

import (
	"reflect"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
)

// A Kustomization and a source with every field that Flux has: what the sync hands through has no mistake, and all that
// has no place is named.
func TestSyncOfEveryField(t *testing.T) {
	k, g := &kustomizev1.Kustomization{}, &sourcev1.GitRepository{}
	fill(reflect.ValueOf(&k.Spec).Elem())
	fill(reflect.ValueOf(&g.Spec).Elem())
	g.Namespace = "elsewhere"
	sync, notes, err := fluxspec.SyncOf(k, g)
	if err != nil {
		t.Fatal(err)
	}
	if problems := fluxspec.Problems("", sync.Source, sync.Package, &sync.SyncOptions); len(problems) > 0 {
		t.Error(problems)
	}
	names(t, notes, "spec.deletionPolicy", "spec.kubeConfig", "spec.suspend", "spec.dependsOn", "source namespace", "source suspend")
	out := kustomizev1.KustomizationSpec{}
	if err := fluxspec.AddTo(&out, sync.Package.Kustomize.Spec); err != nil {
		t.Fatal(err)
	}
	want := k.Spec
	want.Interval, want.Timeout, want.KubeConfig, want.Path, want.Prune, want.DeletionPolicy, want.SourceRef = out.Interval, nil, nil, "", false, "", out.SourceRef
	want.Suspend, want.Wait, want.HealthCheckExprs, want.PostBuild.Substitute = false, false, nil, nil
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
}

// names expects the fields that are named, in this order.
func names(t *testing.T, notes []string, want ...string) {
	t.Helper()
	for i, note := range notes {
		notes[i], _, _ = strings.Cut(note, ":")
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The same of a HelmRelease, with its HelmRepository or a chart in Git.
func TestSyncOfEveryFieldOfARelease(t *testing.T) {
	r, repository, g := &helmv2.HelmRelease{}, &sourcev1.HelmRepository{}, &sourcev1.GitRepository{}
	for _, spec := range []any{&r.Spec, &repository.Spec, &g.Spec} {
		fill(reflect.ValueOf(spec).Elem())
	}
	r.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`{"price":["$(10)",3]}`)}
	r.Spec.Chart.Spec.Version, r.Spec.Upgrade.DisableWait = "1.2.3", false
	r.Status.History = helmv2.Snapshots{{Name: "x-x", ChartVersion: "1.2.3"}}
	whole := fluxspec.ChartOf(&r.Spec.Chart.Spec)
	sync, notes, err := fluxspec.SyncOfRelease(r, whole, repository)
	if err != nil {
		t.Fatal(err)
	}
	if problems := fluxspec.Problems("", sync.Source, sync.Package, &sync.SyncOptions); len(problems) > 0 {
		t.Error(problems)
	}
	names(t, notes, "spec.kubeConfig", "spec.suspend", "spec.dependsOn", "source suspend", "spec.install.disableWait", "spec.chart.metadata", "chart interval")
	if values := string(sync.Package.Helm.Values.Raw); values != `{"price":["$$(10)",3]}` || sync.Source.Helm.Version != "1.2.3" || !*sync.Wait {
		t.Errorf("%s, %+v", values, sync)
	}
	out := helmv2.HelmReleaseSpec{}
	if err := fluxspec.AddTo(&out, sync.Package.Helm.Spec); err != nil {
		t.Fatal(err)
	}
	want := r.Spec
	want.Chart, want.ChartRef, want.Interval, want.KubeConfig, want.Suspend, want.ReleaseName = nil, nil, out.Interval, nil, false, "x-x"
	want.Timeout, want.Values, want.HealthCheckExprs, want.Install.DisableWait = nil, nil, nil, false
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
	chart := sourcev1.HelmChartSpec{}
	if err := fluxspec.AddTo(&chart, sync.Package.Helm.Chart); err != nil {
		t.Fatal(err)
	}
	chart.Chart, chart.Version, chart.SourceRef, chart.Interval, chart.ReconcileStrategy = "x", "1.2.3", whole.SourceRef, whole.Interval, whole.ReconcileStrategy
	if diff := cmp.Diff(*whole, chart); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
	sync, notes, err = fluxspec.SyncOfRelease(r, whole, g)
	if err != nil || sync.Package.Helm.Path != "x" || !strings.HasPrefix(notes[len(notes)-1], "chart reconcileStrategy: ") {
		t.Errorf("%+v, %q, %v", sync.Package.Helm, notes, err)
	}
}

// A range of versions becomes the one that was installed last, and the name of the release stays as it is.
func TestSyncOfARange(t *testing.T) {
	r := &helmv2.HelmRelease{Spec: helmv2.HelmReleaseSpec{Chart: &helmv2.HelmChartTemplate{Spec: helmv2.HelmChartTemplateSpec{Chart: "a", Version: "1.x"}}}}
	spec, repository := fluxspec.ChartOf(&r.Spec.Chart.Spec), &sourcev1.HelmRepository{}
	if _, _, err := fluxspec.SyncOfRelease(r, spec, repository); err == nil || !strings.HasPrefix(err.Error(), "status.history: the chart was not installed yet") {
		t.Error(err)
	}
	r.Status.History = helmv2.Snapshots{{Version: 1, Name: "a", ChartVersion: "1.0.0"}, {Version: 2, Name: "a", ChartVersion: "1.2.0"}}
	sync, notes, err := fluxspec.SyncOfRelease(r, spec, repository)
	if err != nil || sync.Source.Helm.Version != "1.2.0" || string(sync.Package.Helm.Spec.Raw) != `{"releaseName":"a"}` {
		t.Errorf("%+v, %v", sync.Source.Helm, err)
	}
	if want := "source version 1.x: it followed what moves; the module is at the version 1.2.0, and rolls out another when you change that"; len(notes) != 1 || notes[0] != want {
		t.Error(notes)
	}
}

// What moves becomes the version that was fetched, and is named.
func TestSyncOfVersions(t *testing.T) {
	artifact := func(revision string) *meta.Artifact { return &meta.Artifact{Revision: revision} }
	git := func(ref *sourcev1.GitRepositoryRef, fetched *meta.Artifact) client.Object {
		return &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: "https://x.test", Reference: ref}, Status: sourcev1.GitRepositoryStatus{Artifact: fetched}}
	}
	oci := func(ref *sourcev1.OCIRepositoryRef, fetched *meta.Artifact) client.Object {
		return &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{URL: "oci://x.test", Reference: ref}, Status: sourcev1.OCIRepositoryStatus{Artifact: fetched}}
	}
	for name, test := range map[string]struct {
		source client.Object
		want   string
	}{
		"a tag":                {git(&sourcev1.GitRepositoryRef{Tag: "v1"}, nil), "{tag: v1}"},
		"a commit of a branch": {git(&sourcev1.GitRepositoryRef{Branch: "main", Commit: "abc"}, nil), "{revision: abc}"},
		"a branch":             {git(&sourcev1.GitRepositoryRef{Branch: "main"}, artifact("main@sha1:abc")), "{revision: abc} it followed what moves; the module is at the commit abc of main, and rolls out another when you change that"},
		"no reference":         {git(nil, artifact("master@sha1:abc")), "{revision: abc} it followed what moves; the module is at the commit abc of master, and rolls out another when you change that"},
		"versions":             {git(&sourcev1.GitRepositoryRef{SemVer: "1.x"}, artifact("v1.2.3@sha1:abc")), "{tag: v1.2.3} it followed what moves; the module is at the tag v1.2.3, and rolls out another when you change that"},
		"a branch not fetched": {git(&sourcev1.GitRepositoryRef{Branch: "main"}, nil), "status.artifact: the source was not fetched yet, so it is not known at which version it is"},
		"a digest":             {oci(&sourcev1.OCIRepositoryRef{Digest: "sha256:abc", Tag: "v1"}, nil), "{digest: sha256:abc}"},
		"an artifact's tag":    {oci(nil, nil), "{tag: latest}"},
		"artifacts' versions":  {oci(&sourcev1.OCIRepositoryRef{SemVer: ">1"}, artifact("2.0@sha256:abc")), "{tag: \"2.0\"} it followed what moves; the module is at the tag 2.0, and rolls out another when you change that"},
		"a prefix":             {&sourcev1.Bucket{Spec: sourcev1.BucketSpec{Endpoint: "s3.test", BucketName: "a", Prefix: "v1/"}}, "{bucketName: a\nendpoint: s3.test\nprefix: v1/}"},
		"a whole bucket": {
			&sourcev1.Bucket{Spec: sourcev1.BucketSpec{Endpoint: "s3.test", BucketName: "a", Region: "eu"}},
			"{bucketName: a\nendpoint: s3.test\nmutable: true\nspec:\n  region: eu} it is not set, so all clusters follow what changes, at the same time; give each version a prefix of its own, and remove mutable",
		},
		"another source": {&sourcev1.ExternalArtifact{}, "the source is of kind ExternalArtifact; modules fetch from a GitRepository, OCIRepository, Bucket or HelmRepository"},
	} {
		t.Run(name, func(t *testing.T) {
			sync, notes, err := fluxspec.SyncOf(&kustomizev1.Kustomization{}, test.source)
			var got string
			switch {
			case err != nil:
				got = err.Error()
			case sync.Source.Git != nil:
				got = inline(t, sync.Source.Git.Version)
			case sync.Source.Bucket != nil:
				got = inline(t, sync.Source.Bucket)
			default:
				got = inline(t, sync.Source.OCI.Version)
			}
			for _, note := range notes {
				_, said, _ := strings.Cut(note, ": ")
				got += " " + said
			}
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func inline(t *testing.T, of any) string {
	t.Helper()
	text, err := yaml.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return "{" + strings.TrimSpace(string(text)) + "}"
}
