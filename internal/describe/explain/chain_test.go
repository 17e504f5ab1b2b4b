package explain

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/describe"
)

// graph is which object waits for which; an error ends the chain there.
type graph struct {
	waits map[string]string
	errs  map[string]error
}

// about asks about an object of the graph.
func (g *graph) about(a *asker, name string) *question {
	return a.ask(pod(name), func(_ context.Context, first bool) (answer, error) {
		found := answer{Links: []Link{a.link(pod(name), "", "%s waits.", name)}}
		if first {
			found.Facts, found.Details = []describe.Fact{describe.FactOf("name", name)}, name
		}
		if next := g.waits[name]; next != "" {
			found.Then = g.about(a, next)
		}
		if err := g.errs[name]; err != nil {
			return answer{}, err
		}
		return found, nil
	})
}

var prod = World{Flags: []string{"--context", "prod"}}

func pod(name string) describe.Ref { return describe.Ref{Kind: "Pod", Namespace: "shop", Name: name} }

func (g *graph) follow(t *testing.T, from string) (string, Chain, error) {
	t.Helper()
	found, err := follow(t.Context(), g.about(&asker{World: prod}, from))
	var names []string
	for _, link := range found.Links {
		names = append(names, link.Name)
	}
	return strings.Join(names, " "), found, err
}

// A chain ends at the root, before an object that it has asked about, and after a number
// of links.
func TestChainsEnd(t *testing.T) {
	long := map[string]string{}
	name := "a"
	for range 2 * maxLinks {
		long[name] = name + "a"
		name += "a"
	}
	for want, g := range map[string]graph{
		"a b c": {waits: map[string]string{"a": "b", "b": "c"}},
		"a b":   {waits: map[string]string{"a": "b", "b": "a"}},
		"a":     {waits: map[string]string{"a": "a"}},
	} {
		if got, _, err := g.follow(t, "a"); got != want || err != nil {
			t.Errorf("%q, want %q: %v", got, want, err)
		}
	}
	g := graph{waits: long}
	if _, found, err := g.follow(t, "a"); len(found.Links) != maxLinks || err != nil {
		t.Errorf("%d links: %v", len(found.Links), err)
	}
}

// Facts and details are those of the first object; a full stop is left out.
func TestFactsAreOfTheFirst(t *testing.T) {
	g := graph{waits: map[string]string{"a": "b"}}
	_, found, _ := g.follow(t, "a")
	if len(found.Facts) != 1 || found.Details != "a" || found.Root().Sentence != "b waits" {
		t.Errorf("%+v", found)
	}
}

// An error about the first object is an error; about a later one it is the last link,
// with the command that reads what was refused.
func TestErrorsEndChains(t *testing.T) {
	forbidden := func(resource, name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: resource}, name, errors.New("no"))
	}
	g := graph{waits: map[string]string{"a": "b"}, errs: map[string]error{"a": errors.New("down")}}
	if _, _, err := g.follow(t, "a"); err == nil {
		t.Error("an object that cannot be read is no error")
	}
	for next, err := range map[string]error{
		"kubectl get pod/b -n shop --context prod":              errors.New("down"),
		"kubectl get deployments.apps/x -n shop --context prod": forbidden("deployments", "x"),
		"kubectl get deployments.apps -n shop --context prod":   forbidden("deployments", ""),
	} {
		g.errs = map[string]error{"b": err}
		names, found, failed := g.follow(t, "a")
		root := found.Root()
		if names != "a b" || failed != nil || root.Reason != ReasonUnseen || root.Next != next {
			t.Errorf("%s: %s: %s; %s (%v)", names, root.Reason, root.Sentence, root.Next, failed)
		}
	}
}

// Commands name the cluster, and the group of a kind that is not known; a filter gets no
// flags.
func TestCommands(t *testing.T) {
	a := &asker{World: prod}
	for want, got := range map[string]string{
		"kubectl get pod/web -n shop --context prod": a.kubectl("get", pod("web")),
		"kubectl describe node/n1 --context prod":    a.kubectl("describe", describe.Ref{Kind: "Node", Name: "n1"}),
		"kubectl get certificate.cert-manager.io/web -n shop -o yaml --context prod": a.kubectl("get", describe.Ref{
			Kind: "Certificate", APIVersion: "cert-manager.io/v1", Namespace: "shop", Name: "web",
		}, "-o", "yaml"),
		"kubectl get pods -A --context prod | grep web":                  a.command("kubectl get pods -A | grep web"),
		"spillway explain rolloutgroup/ingester -n mimir --context prod": a.spillway("explain", describe.Ref{Kind: "RolloutGroup", Namespace: "mimir", Name: "ingester"}),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A link in another cluster says so, and which command must be run first.
func TestLinksOfOtherClusters(t *testing.T) {
	a := &asker{World: prod}
	a.In, a.First = "c1", "get the kubeconfig"
	link := a.linkTo(&describe.Unit{Ref: pod("web"), Ring: describe.Zones, Sentence: "web is updating: not ready."})
	if link.Sentence != "on cluster c1, web is updating: not ready" || link.Cluster != "c1" || link.First == "" || link.Ring != "zones" {
		t.Errorf("%+v", link)
	}
}
