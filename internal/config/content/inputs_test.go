package content

import (
	"fmt"
	"slices"
	"testing"
)

// TestInputsChangeWithAllThatAHashFollowsFrom changes one thing at a time.
func TestInputsChangeWithAllThatAHashFollowsFrom(t *testing.T) {
	app, db := Object{ConfigMap, "shop", "app"}, Object{Secret, "shop", "db"}
	known := func(change func(*Known)) *Known {
		k := &Known{
			demand: Demand{Namespace: "shop", Uses: []Reference{{Object: app, Required: true}, {Object: db}}, Wave: []Reference{{Object: app}}},
			facts:  Facts{app: {exists: true, version: "u/1", ignored: true}, db: {exists: true, version: "v/7", ignored: true}},
		}
		change(k)
		return k
	}
	seen := map[string]string{}
	for name, inputs := range map[string]string{
		"as it was":            known(func(*Known) {}).Inputs("shop/deployment/web", "h"),
		"another workload":     known(func(*Known) {}).Inputs("shop/deployment/api", "h"),
		"another hash":         known(func(*Known) {}).Inputs("shop/deployment/web", "g"),
		"another version":      known(func(k *Known) { k.facts[app] = fact{exists: true, version: "u/2", ignored: true} }).Inputs("shop/deployment/web", "h"),
		"recreated":            known(func(k *Known) { k.facts[app] = fact{exists: true, version: "w/1", ignored: true} }).Inputs("shop/deployment/web", "h"),
		"deleted":              known(func(k *Known) { k.facts[db] = fact{} }).Inputs("shop/deployment/web", "h"),
		"not ignored any more": known(func(k *Known) { k.facts[db] = fact{exists: true, version: "v/7"} }).Inputs("shop/deployment/web", "h"),
		"another key":          known(func(k *Known) { k.demand.Uses[1].Keys = []KeyUse{{Name: "p"}} }).Inputs("shop/deployment/web", "h"),
		"one reference less":   known(func(k *Known) { k.demand.Uses = k.demand.Uses[:1] }).Inputs("shop/deployment/web", "h"),
		"wave reads more":      known(func(k *Known) { k.demand.Wave = k.demand.Uses }).Inputs("shop/deployment/web", "h"),
		"a user ignores a key": known(func(k *Known) { k.demand.Ignored = []Reference{{Object: app, Keys: []KeyUse{{Name: "a"}}}} }).Inputs("shop/deployment/web", "h"),
	} {
		if other, found := seen[inputs]; found {
			t.Errorf("%q and %q are the same", name, other)
		}
		seen[inputs] = name
	}
	for range 100 { // maps have no order
		if again := known(func(*Known) {}).Inputs("shop/deployment/web", "h"); seen[again] != "as it was" {
			t.Fatal("the same inputs are not the same")
		}
	}
}

// TestInputsAreComputedAgain changes what is known of a workload after they were computed.
func TestInputsAreComputedAgain(t *testing.T) {
	k := &Known{}
	first := k.Inputs("a", "h")
	if second := k.Inputs("a", "g"); second == first || k.Inputs("a", "h") != first {
		t.Error("they do not follow the hash")
	}
}

func TestBatch(t *testing.T) {
	var due []*Known
	for i := range 10 { // five share one object, the others have one each
		o := Object{ConfigMap, "shop", "shared"}
		if i%2 == 1 {
			o.Name = fmt.Sprint(i)
		}
		due = append(due, &Known{facts: Facts{o: {exists: true}}})
	}
	for objects, want := range map[int]int{1: 5, 2: 6, 3: 7, 100: 10} {
		if got := len(Batch(due, objects)); got != want {
			t.Errorf("%d workloads for %d objects, want %d", got, objects, want)
		}
	}
}

// TestBatchTakesALargeOneWithSmallOnes: neither keeps the others waiting.
func TestBatchTakesALargeOneWithSmallOnes(t *testing.T) {
	of := func(n int, prefix string) *Known {
		k := &Known{facts: Facts{}}
		for i := range n {
			k.facts[object(ConfigMap, prefix+fmt.Sprint(i))] = fact{exists: true}
		}
		return k
	}
	large, second, first, then, late := of(5, "a"), of(5, "b"), of(1, "c"), of(1, "d"), of(1, "e")
	got := Batch([]*Known{large, second, first, then, late}, 2)
	if !slices.Equal(got, []*Known{large, first, then}) {
		t.Errorf("it took %d workloads", len(got))
	}
	missing := of(mostAwaited+1, "f")
	for o := range missing.facts {
		missing.facts[o] = fact{}
	}
	missing.demand.First = true // it reads nothing, and so does one that has a hash
	few := &Known{demand: Demand{First: true}, facts: Facts{object(ConfigMap, "g"): {}, object(ConfigMap, "h"): {}}}
	if got := Batch([]*Known{first, missing, few}, 2); !slices.Equal(got, []*Known{first, missing}) {
		t.Errorf("it took %d workloads", len(got))
	}
}

// TestANameThatNoObjectCanHave is of a reference that older API servers accept, and that a
// client refuses to ask for: nothing is read.
func TestANameThatNoObjectCanHave(t *testing.T) {
	k := &Known{}
	odd := Reference{Object: Object{ConfigMap, "shop", "a/b"}}
	lookup := Source{}.Lookup()
	if _, err := lookup.Observe(t.Context(), k, "1", Demand{Namespace: "shop", Uses: []Reference{odd}, First: true}); err != nil {
		t.Fatal(err)
	}
	if errs := lookup.Hash(t.Context(), []*Known{k}); errs[0] != nil || k.Hashes() == nil {
		t.Errorf("it has the hashes %v: %v", k.Hashes(), errs)
	}
}
