package fluxspec_test

import (
	"reflect"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	sync, notes, err := fluxspec.SyncOf(k, g)
	if err != nil {
		t.Fatal(err)
	}
	if problems := fluxspec.Problems("", sync.Source, sync.Package, &sync.SyncOptions); len(problems) > 0 {
		t.Error(problems)
	}
	for i, note := range notes {
		notes[i], _, _ = strings.Cut(note, ":")
	}
	if diff := cmp.Diff([]string{"spec.suspend", "spec.kubeConfig", "spec.deletionPolicy", "spec.sourceRef.namespace"}, notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
		"another source":       {&sourcev1.Bucket{}, "spec.sourceRef: it fetches from a *v1.Bucket, and modules from a GitRepository or an OCIRepository"},
	} {
		t.Run(name, func(t *testing.T) {
			sync, notes, err := fluxspec.SyncOf(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}, test.source)
			var got string
			switch {
			case err != nil:
				got = err.Error()
			case sync.Source.Git != nil:
				got = inline(t, sync.Source.Git.Version)
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
