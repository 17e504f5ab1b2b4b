package render_test

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/plans/render"
)

// TestMemo makes objects again only where what they are made of has changed, and what is
// done to them does not come back.
func TestMemo(t *testing.T) {
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Params.A }}'}}"
	of := func(a string) render.Context { return render.Context{Params: render.Params{"A": a}} }
	name := func(m *render.Memo, text, a string) string {
		t.Helper()
		objects, err := m.Objects("a.yaml", text, of(a), "default")
		if err != nil {
			t.Fatal(err)
		}
		defer objects[0].SetName("changed")
		return objects[0].GetName()
	}
	var none *render.Memo
	first := none.Next()
	second := first.Next()
	for _, m := range []*render.Memo{none, first, first, second, second.Next(), first.Next().Next()} {
		if got := name(m, text, "x"); got != "x" {
			t.Errorf("%s", got)
		}
		if got := name(m, text, "y"); got != "y" {
			t.Errorf("with another value: %s", got)
		}
		if got := name(m, "{apiVersion: v1, kind: ConfigMap}", "x"); got != "default" {
			t.Errorf("of another text: %s", got)
		}
	}
	for range 2 {
		if _, err := first.Objects("a.yaml", "{{ .Params.NONE }}", of("x"), ""); err == nil {
			t.Error("an error is not remembered, and no object is")
		}
	}
}
