package hub

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
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
		"no source":                 {nil, "v1@sha1:" + commit, nil},
	} {
		t.Run(name, func(t *testing.T) {
			template := v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: test.source}}
			want := v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: test.want}}
			before := RevisionName(KindModule, "app", template)
			got := exact(&template, test.resolved)
			if RevisionName(KindModule, "app", *got) != RevisionName(KindModule, "app", want) {
				t.Errorf("%+v", got.Sync.Source)
			}
			if RevisionName(KindModule, "app", template) != before {
				t.Error("the template itself was changed")
			}
		})
	}
}

// One hub does not assign a revision to anybody before it is known to have been written
// down what its tag is, where a cluster has told.
func TestWhatATagIsComesBeforeTheNextAssignment(t *testing.T) {
	template := v1alpha1.TemplateSpec{}
	name := RevisionName(KindModule, "app", template)
	o := Observed{AsOf: "7", Revisions: []Revision{{Name: name, UID: "r"}}, Clusters: []Cluster{{Name: "a", Ready: true}, {Name: "b", Ready: true}}}
	o.Module = Module{Kind: KindModule, Name: "app", Finalized: true}
	o.Module.Spec = v1alpha1.ModuleSpec{
		Selector: &metav1.LabelSelector{}, Strategy: v1alpha1.Incremental, Template: &v1alpha1.ModuleTemplate{Spec: template},
	}
	o.Records = []Record{{Cluster: "a", Assigned: true, Revision: name, Reported: true, State: v1alpha1.StateSucceeded, Succeeded: name, Resolved: "v1@sha1:0"}}
	p := Decide(o)
	if len(p.Writes) != 1 || p.Writes[0].Act != Resolve || p.Writes[0].Resolved != "v1@sha1:0" || p.Permits {
		t.Errorf("it has to be written down first: %+v", p.Writes)
	}
	for name, change := range map[string]func(*Record){
		"what it says is not what the revision does": func(r *Record) { r.Edited = true },
		"it was so, and the report is of then":       func(r *Record) { r.Stale = true },
		"somebody holds it":                          func(r *Record) { r.Hold = &v1alpha1.Hold{By: "alice"} },
	} {
		other := o
		other.Records = []Record{o.Records[0]}
		change(&other.Records[0])
		if p := Decide(other); slices.ContainsFunc(p.Writes, func(w Write) bool { return w.Act == Resolve }) {
			t.Errorf("%s, and it is taken for what the tag is", name)
		}
	}
	refused := o
	refused.Refusals = map[string]Refusal{name: {At: o.Now.Add(1), Reason: "forbidden"}}
	if p := Decide(refused); len(p.Writes) > 0 || p.Permits || !strings.Contains(p.Status.WaitingFor, "what the tag stands for cannot be written down: forbidden") {
		t.Errorf("%+v, waits for %s", p.Writes, p.Status.WaitingFor)
	}
	o.Revisions = []Revision{{Name: name, UID: "r", Resolved: "v1@sha1:0"}}
	if p := Decide(o); !p.Permits || len(p.Status.Moves) != 1 || p.Status.Moves[0].Cluster != "b" {
		t.Errorf("then the next goes: %+v", p.Status.Moves)
	}
}
