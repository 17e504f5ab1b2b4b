package history

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/describe"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func managed(by string, minute int, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))
	return metav1.ManagedFieldsEntry{Manager: by, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestWhoWroteLast(t *testing.T) {
	const template = `{"f:spec":{"f:template":{"f:spec":{}}}}`
	obj := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		managed("helm", 1, template), managed("kubectl-edit", 3, template), managed("argocd", 2, template),
		managed("autoscaler", 5, `{"f:spec":{"f:replicas":{}}}`),
		{Manager: "kube-controller-manager", Subresource: "scale", Time: &metav1.Time{Time: noon.Add(time.Hour)}, FieldsV1: metav1.NewFieldsV1(template)},
		{Manager: "timeless", FieldsV1: metav1.NewFieldsV1(template)},
		managed("broken", 9, `{`),
	}}
	for want, path := range map[string][]string{
		"kubectl-edit": {"spec", "template"}, "autoscaler": {"spec"}, "": {"spec", "paused"},
	} {
		if got := writerOf(obj, path).by; got != want {
			t.Errorf("of %v, the last writer is %q, want %q", path, got, want)
		}
	}
	if got := people([]string{"helm", "", "argocd", "helm"}); got != "argocd, helm" {
		t.Errorf("people = %q", got)
	}
}

// A note belongs to the last episode that had begun by then, a command also to the one
// that it began; and what the object has kept is not told twice.
func TestNotesFallIntoEpisodes(t *testing.T) {
	minute := func(m float64) *time.Time {
		at := noon.Add(time.Duration(m * float64(time.Minute)))
		return &at
	}
	group := describe.Ref{Kind: "RolloutGroup", Name: "ingester"}
	note := func(m float64, reason string) Event { return Event{At: *minute(m), About: group, Reason: reason} }
	command := note(9.99, "Retried")
	command.Command = true
	episodes := []Entry{
		{What: "third"}, {What: "second", Started: minute(10)}, {What: "first", Started: minute(0)},
	}
	annotate(episodes, []Event{note(20, "Stuck")})
	annotate(episodes, []Event{
		note(-1, "Before"), note(9.99, "Done"), command, note(0, "Began"), note(12, "Began"), note(20.02, "Stuck"), note(30, "Stuck"),
	})
	got := map[string][]string{}
	for _, e := range episodes {
		for _, n := range e.Notes {
			got[e.What] = append(got[e.What], n.Reason)
		}
	}
	want := map[string][]string{"second": {"Retried", "Began", "Stuck", "Stuck"}, "first": {"Began", "Done"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAssemblagesTellOfTheirModules(t *testing.T) {
	s := &Members{refs: map[describe.Ref]bool{{Kind: "Module", Name: "shop"}: true}, module: "shop"}
	about := describe.Ref{Kind: "ProxyAssemblage", Name: "c1"}
	for text, want := range map[string]bool{"sync shop: ready": true, "sync shop-2: ready": false} {
		if got := s.Has(&Event{About: about, Text: text}); got != want {
			t.Errorf("%q is told of shop: %v", text, got)
		}
	}
	if !s.Has(&Event{About: describe.Ref{Kind: "Module", Name: "shop"}}) || s.Has(&Event{About: describe.Ref{Kind: "Module", Name: "x"}}) {
		t.Error("a module has what is about itself, and nothing else")
	}
}
