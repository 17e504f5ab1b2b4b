package watch

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The watches of an identity end with the last reader that needs them, and begin again for the next.
func TestAnIdentityWatchesWhileItIsNeeded(t *testing.T) {
	w := &Watches{readers: map[key]map[types.NamespacedName]bool{}, reads: map[types.NamespacedName]*reads{}, identities: map[types.NamespacedName]*identity{}}
	one, other := types.NamespacedName{Namespace: "shop", Name: "one"}, types.NamespacedName{Namespace: "shop", Name: "other"}
	as := types.NamespacedName{Namespace: "shop", Name: "deployer"}
	pass := func(reader types.NamespacedName, reads bool) *identity {
		w.Begin(reader)
		defer w.End(reader)
		if !reads {
			return nil
		}
		w.note(reader, key{schema.GroupKind{Kind: "ConfigMap"}, reader})
		return w.join(t.Context(), reader, as)
	}
	first := pass(one, true)
	pass(other, true)
	pass(other, true)
	pass(one, false)
	if first.ctx.Err() != nil {
		t.Fatal("they have ended though another reader needs them")
	}
	w.Forget(other)
	if first.ctx.Err() == nil || len(w.identities) > 0 || len(w.reads) > 0 {
		t.Fatalf("they go on: %v, %d identities, %d readers", first.ctx.Err(), len(w.identities), len(w.reads))
	}
	if again := pass(one, true); again == first || again.ctx.Err() != nil {
		t.Error("they do not begin again")
	}
	w.Begin(one) // a pass that does not end, as for an error
	pass(one, false)
	if len(w.identities) > 0 {
		t.Error("a pass that did not end keeps them")
	}
}
