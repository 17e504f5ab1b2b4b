package config_test

import (
	"slices"
	"testing"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// A namespace with pins that was deleted, and the Role of the manager with it, takes the pins from no
// workload elsewhere: the next manager goes on with them.
func TestANamespaceThatIsGoneTakesPinsFromNoOther(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	rules, err := manifests.PinRules(w.options.PinNamespaces)
	if err != nil {
		t.Fatal(err)
	}
	user := "manager-of-" + w.namespace
	w.grant(user, slices.Concat(w.rules(), rules))
	w.secret("db", "p", "1")
	w.apply(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true"))
	w.manageAs(user)
	pins := w.pinnedAgain("Deployment", "app", "")
	w.halt()
	w.options.PinNamespaces = pin.In(w.namespace, "gone-"+w.namespace)
	w.silent(func() { w.manage() })
	w.rests(func() {
		if now := w.pinsOf("Deployment", "app"); now != pins {
			t.Errorf("the pins are %q, want still %q", now, pins)
		}
	})
	w.secret("db", "p", "2")
	again := w.pinnedAgain("Deployment", "app", pins)
	w.eventually(func() error { return want(again, w.pinsOf("Deployment", "app")) })
	if c := w.condition("app"); c != "" {
		t.Errorf("it says %s", c)
	}
}
