package world_test

import (
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// A revision is known by its names, by the beginning of its hash, or as the new one; what is said of
// it goes before what is said of all.
func TestARevisionTakesItsTime(t *testing.T) {
	t.Parallel()
	w, err := world.New(t.Context(), time.Now(), world.Server{})
	if err != nil {
		t.Fatal(err)
	}
	old := world.Revision{ID: "1", Names: []string{"v1"}, Hash: "0123456789"}
	next := world.Revision{ID: "2", Names: []string{"v2"}, Hash: "abcdef0123"}
	r := world.Readiness{Default: 1}
	for key, d := range map[string]time.Duration{
		"deployment/a": 2, "deployment/a@new": 3, "deployment/b@v2": 4, "deployment/c@abcdef": 5, "deployment/c@0123": 6, "cluster/d@v1": 7,
	} {
		r.Set(key, d)
	}
	at := func(v world.Revision) func() world.Revision { return func() world.Revision { return v } }
	if d := w.ReadyIn(r, "Deployment", "a", at(old)); d != 0 {
		t.Errorf("what ran before the change takes %d", d)
	}
	w.Begun = true
	for _, c := range []struct {
		kind, name string
		of         world.Revision
		want       time.Duration
	}{
		{"Deployment", "a", old, 2}, {"Deployment", "a", next, 3},
		{"Deployment", "b", old, 1}, {"Deployment", "b", next, 4},
		{"Deployment", "c", next, 5}, {"Deployment", "c", old, 1}, // four digits are none
		{"cluster", "d", old, 7}, {"cluster", "d", next, 1},
	} {
		if d := w.ReadyIn(r, c.kind, c.name, at(c.of)); d != c.want {
			t.Errorf("%s %s of revision %s: %d, not %d", c.kind, c.name, c.of.ID, d, c.want)
		}
	}
}
