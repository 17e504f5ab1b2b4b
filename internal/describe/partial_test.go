package describe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe/describetest"
	"github.com/spillway-dev/spillway/rollout"
)

// TestPartial: before everything is described, the caller receives what is known, and never as more than that.
func TestPartial(t *testing.T) {
	c, _ := describetest.ClientAs(t, "")
	namespace := describetest.SomeConfig(t, c, 2)
	other := describetest.Tracked(namespace, "other")
	other.Annotations = nil
	web := describetest.Tracked(namespace, "web")
	for _, d := range []*appsv1.Deployment{other, web} {
		if err := c.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	var parts []Partial
	look := Options{Namespace: namespace, Config: config.Options{Now: time.Now}, Partial: func(p Partial) { parts = append(parts, p) }}
	found, err := Describe(t.Context(), c, look)
	if err != nil {
		t.Fatal(err)
	}
	named := false
	for i := range parts {
		p := &parts[i]
		if len(p.Reading) == 0 {
			t.Errorf("part %d is everything", i)
		}
		if i > 0 && len(p.Reading) > len(parts[i-1].Reading) {
			t.Errorf("%v is read again after %v", p.Reading, parts[i-1].Reading)
		}
		isRead := !slices.Contains(p.Reading, Config)
		for _, u := range p.Units {
			if u.Phase == PhaseReading == isRead {
				t.Errorf("%s is %s while %v is being read", &u.Ref, u.Phase, p.Reading)
			}
			if !isRead && u.Name == "other" {
				t.Errorf("%s is not tracked, and named", &u.Ref)
			}
			named = named || u.Name == "web" && u.Phase == PhaseReading
		}
	}
	if !named {
		t.Errorf("web is not named before it is described: %v", parts)
	}
	for _, u := range Rolled(found.Units) {
		if u.Phase == PhaseReading {
			t.Errorf("in the end %s is %s", &u.Ref, u.Phase)
		}
	}
	if u := Find(found.Units, Ref{Kind: "Deployment", Namespace: namespace, Name: "web"}); u == nil || u.Phase == rollout.PhaseComplete {
		t.Errorf("web is %v", u)
	}
}

// TestPartialOfOtherNamespaces: a manager that does not watch a namespace describes nothing there.
func TestPartialOfOtherNamespaces(t *testing.T) {
	c, _ := describetest.ClientAs(t, "")
	namespace := describetest.SomeConfig(t, c, 1)
	if err := c.Create(t.Context(), describetest.Tracked(namespace, "web")); err != nil {
		t.Fatal(err)
	}
	look := Options{Namespace: namespace, Config: config.Options{Now: time.Now, Namespaces: []string{namespace + "-other"}}}
	look.Partial = func(p Partial) {
		for i := range p.Units {
			if p.Units[i].Phase == PhaseReading {
				t.Errorf("%s is not watched, and named", &p.Units[i].Ref)
			}
		}
	}
	if _, err := Describe(t.Context(), c, look); err != nil {
		t.Fatal(err)
	}
}

// TestThePageThatComesFirst: of many workloads, the first are named before all of them are listed,
// and that costs no request.
func TestThePageThatComesFirst(t *testing.T) {
	c, _ := describetest.ClientAs(t, "")
	namespace := describetest.SomeConfig(t, c, 1)
	const workloads, page = 104, 100
	var group errgroup.Group
	for i := range workloads {
		group.Go(func() error {
			d := describetest.Tracked(namespace, fmt.Sprintf("web-%03d", i))
			d.Spec.Replicas = new(int32(0))
			return c.Create(t.Context(), d)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	m, requests := watchedAs(t, "", namespace)
	var named []int
	look := Options{Namespace: namespace, Rings: []string{Config}, Config: config.Options{Now: time.Now}}
	look.Partial = func(p Partial) {
		named = append(named, len(p.Units))
		if last := p.Units[len(p.Units)-1]; last.Phase == PhaseReading && last.Name != fmt.Sprintf("web-%03d", len(p.Units)-1) {
			t.Errorf("%s is the last of %d", last.Name, len(p.Units))
		}
	}
	if _, err := Describe(t.Context(), m, look); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{page, workloads}, named); diff != "" {
		t.Errorf("first the page, then all of them (-want +got)\n%s", diff)
	}
	listed := 0
	for _, r := range requests.Requests() {
		if strings.Contains(fmt.Sprint(r), "deployments") {
			listed++
		}
	}
	if listed != 2 { // the page, and the watch that begins with all of them
		t.Errorf("%d requests of Deployments: %v", listed, requests.Requests())
	}
}
