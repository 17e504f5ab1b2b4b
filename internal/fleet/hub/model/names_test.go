package model_test

import (
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// A tag is replaced by what it turned out to be, and nothing else is changed.
func TestATagIsReplacedByWhatItTurnedOutToBe(t *testing.T) {
	commit, digest := strings.Repeat("0a", 20), strings.Repeat("0a", 32)
	git := func(v v1alpha1.GitVersion) *v1alpha1.Source {
		return &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://x.test/a", Version: v, SecretRef: &v1alpha1.LocalReference{Name: "key"}}}
	}
	oci := func(v v1alpha1.OCIVersion) *v1alpha1.Source {
		return &v1alpha1.Source{OCI: &v1alpha1.OCISource{URL: "oci://x.test/a", Version: v}}
	}
	helm := func(version string) *v1alpha1.Source {
		return &v1alpha1.Source{Helm: &v1alpha1.HelmSource{URL: "https://x.test", Chart: "a", Version: version}}
	}
	bucket := &v1alpha1.Source{Bucket: &v1alpha1.BucketSource{Endpoint: "x.test", BucketName: "a", Prefix: "v1/"}}
	for name, test := range map[string]struct {
		source   *v1alpha1.Source
		resolved string
		want     *v1alpha1.Source
	}{
		"a tag":                     {git(v1alpha1.GitVersion{Tag: "v1"}), "v1@sha1:" + commit, git(v1alpha1.GitVersion{Revision: commit})},
		"one with an @":             {git(v1alpha1.GitVersion{Tag: "pkg@v1"}), "pkg@v1@sha1:" + commit, git(v1alpha1.GitVersion{Revision: commit})},
		"a repository with SHA-256": {git(v1alpha1.GitVersion{Tag: "v1"}), "v1@sha256:" + digest, git(v1alpha1.GitVersion{Revision: digest})},
		"a tag of an artifact":      {oci(v1alpha1.OCIVersion{Tag: "v1"}), "v1@sha256:" + digest, oci(v1alpha1.OCIVersion{Digest: "sha256:" + digest})},
		"a commit":                  {git(v1alpha1.GitVersion{Revision: commit}), "sha1:" + commit, git(v1alpha1.GitVersion{Revision: commit})},
		"a tag that is to move":     {git(v1alpha1.GitVersion{Tag: "v1", Mutable: true}), "v1@sha1:" + commit, git(v1alpha1.GitVersion{Tag: "v1", Mutable: true})},
		"an artifact's, likewise":   {oci(v1alpha1.OCIVersion{Tag: "v1", Mutable: true}), "v1@sha256:" + digest, oci(v1alpha1.OCIVersion{Tag: "v1", Mutable: true})},
		"nothing known":             {git(v1alpha1.GitVersion{Tag: "v1"}), "", git(v1alpha1.GitVersion{Tag: "v1"})},
		"nothing that is a commit":  {git(v1alpha1.GitVersion{Tag: "v1"}), "v1@sha1:abc", git(v1alpha1.GitVersion{Tag: "v1"})},
		"a range of charts":         {helm("1.x"), "1.2.0", helm("1.2.0")},
		"another range is reported": {helm("1.x"), ">0", helm("1.x")},
		"a version of a chart":      {helm("1.0.0"), "1.2.0", helm("1.0.0")},
		"a bucket":                  {bucket, "sha256:" + digest, bucket},
		"no source":                 {nil, "v1@sha1:" + commit, nil},
	} {
		t.Run(name, func(t *testing.T) {
			template := v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: test.source}}
			want := v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: test.want}}
			before := model.RevisionName(model.KindModule, "app", template)
			got := model.Pinned(&template, test.resolved)
			if model.RevisionName(model.KindModule, "app", *got) != model.RevisionName(model.KindModule, "app", want) {
				t.Errorf("%+v", got.Sync.Source)
			}
			if model.RevisionName(model.KindModule, "app", template) != before {
				t.Error("the template itself was changed")
			}
		})
	}
}

// The name of a revision follows from what makes a difference, and from nothing else.
func TestRevisionNames(t *testing.T) {
	plain, dotted := templateOf("v1"), templateOf("v1")
	dotted.Sync.Package = &v1alpha1.Package{Kustomize: &v1alpha1.Kustomize{Path: "."}}
	dotted.ControlPlaneBindings = []v1alpha1.Binding{}
	name := model.RevisionName
	if a, b := name("Module", "m", plain), name("Module", "m", dotted); a != b {
		t.Errorf("%s and %s are the same", a, b)
	}
	all := map[string]bool{
		name("Module", "m", plain): true, name("BootstrapModule", "m", plain): true, name("Module", "n", plain): true, name("Module", "m", templateOf("v2")): true,
		name("Module", strings.Repeat("m", 100), plain): true, name("Module", strings.Repeat("m", 101), plain): true,
	}
	for n := range all {
		if len(n) > 63 {
			t.Errorf("%s is too long for a label", n)
		}
	}
	if len(all) != 6 {
		t.Errorf("names collide: %v", all)
	}
}
func templateOf(tag string) v1alpha1.TemplateSpec {
	git := &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: tag}}
	return v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: &v1alpha1.Source{Git: git}}}
}
