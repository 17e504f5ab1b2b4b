package reloader_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/config/reloader"
)

// Annotations count in the namespaces that are selected, and from when these are.
func TestSelectedNamespaces(t *testing.T) {
	t.Parallel()
	start := time.Unix(100, 0)
	selector, err := reloader.ParseSelector([]string{"team:*"})
	if err != nil {
		t.Fatal(err)
	}
	o := &reloader.Options{Since: start, IgnoredNamespaces: []string{"left"}, Namespaces: &reloader.Selected{Selector: selector}}
	selected := func(skips string, since time.Time) {
		t.Helper()
		if o.Skips("shop") != (skips == "skips") || !o.SinceIn("shop").Equal(since) {
			t.Errorf("skipped: %v, since %v", o.Skips("shop"), o.SinceIn("shop"))
		}
	}
	with := func(name string, of labels.Set) map[string]labels.Set {
		return map[string]labels.Set{name: of, "left": {"team": "b"}}
	}
	selected("skips", start)
	o.Namespaces.Observe(start.Add(1), with("shop", nil))
	selected("skips", start)
	o.Namespaces.Observe(start.Add(2), with("shop", labels.Set{"team": "a"}))
	selected("counts", start.Add(2))
	o.Namespaces.Observe(start.Add(3), with("shop", labels.Set{"team": "a"}))
	selected("counts", start.Add(2))
	o.Namespaces.Learn(start.Add(4), "shop", nil)
	selected("skips", start)
	o.Namespaces.Learn(start.Add(5), "shop", labels.Set{"team": "c"})
	selected("counts", start.Add(5))
	o.Namespaces.Learn(start.Add(6), "shop", nil)
	o.Namespaces.ObserveAll()
	selected("counts", start)
	if !o.Skips("left") {
		t.Error("a namespace is read that is left out")
	}
	first := &reloader.Options{Since: start, Namespaces: &reloader.Selected{Selector: selector}}
	first.Namespaces.Observe(start.Add(9), with("shop", labels.Set{"team": "a"}))
	if !first.SinceIn("shop").Equal(start) {
		t.Errorf("a namespace that was selected before counts since %v", first.SinceIn("shop"))
	}
}
