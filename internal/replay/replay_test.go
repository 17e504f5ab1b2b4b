package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/spillway-dev/spillway/rollout"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// zones are two zones that roll one at a time.
func zones(now time.Time, current string) rollout.Observed {
	leaf := func(name string) rollout.Unit {
		return rollout.Unit{Name: name, Leaf: rollout.Leaf{Current: current, Target: "secret-v2", Health: rollout.Healthy, HealthySince: noon.Add(-time.Hour)}}
	}
	return rollout.Observed{Now: now, Self: "secret-group", Root: rollout.Unit{
		Name: "secret-group", Policy: rollout.Policy{Order: rollout.OneAtATime, Budget: "secret-budget", ApproveWith: "secret-command", Shared: "secret-teams"},
		Pause: &rollout.Pause{}, Lock: &rollout.Lock{Holder: "secret-holder", Purpose: "rollout", Unit: "secret-zone-a"},
		Gates: []rollout.Gate{{Name: "secret-gate", Message: "secret-reason"}},
		Children: []rollout.Unit{
			{Name: "secret-zone-a", Children: []rollout.Unit{leaf("secret-a-0")}, Pause: &rollout.Pause{By: "secret-user", Reason: "secret-reason", Since: noon}},
			{Name: "secret-zone-b", Children: []rollout.Unit{leaf("secret-b-0"), leaf("secret-b-1")}, Block: &rollout.Block{Reason: "Blocked", Message: "secret-message"}},
			{Name: "secret-zone-c", Group: true, Children: []rollout.Unit{}, Whole: &rollout.Whole{Revision: "secret-v1", Message: "secret-whole"}},
		},
	}}
}

// starts records the decisions of a test into a folder.
func starts(t *testing.T, o Options) (end func()) {
	t.Helper()
	o.Version = "1.2.3"
	if o.Size == 0 {
		o.Size = 8 << 20
	}
	end, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return end
}

func again(t *testing.T, paths ...string) Replayed {
	t.Helper()
	r, err := Again("1.2.4", paths)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is decided while it is recorded is what is decided otherwise, is recorded once for as long as it stays the same, and is
// decided again in the same way: from the folder, and from a file that was exported.
func TestTheSameAgain(t *testing.T) {
	dir := t.TempDir()
	end := starts(t, Options{Dir: dir})
	for i := range 10 {
		o := zones(noon.Add(time.Duration(i)*time.Second), "secret-v1")
		if i >= 5 {
			o.Root.Pause = nil
		}
		if got, want := Decide("RolloutGroup a/b", o), rollout.Decide(o); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("recorded, it decides %v, else %v", got, want)
		}
	}
	for _, moment := range []string{"while it is recorded", "after the end"} {
		exported := filepath.Join(t.TempDir(), "all")
		f, err := os.Create(exported)
		if err == nil {
			err = errors.Join(Export(f, []string{dir}), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, exported} {
			r := again(t, path)
			if r.Decisions != 2 || len(r.Differing) > 0 || !slices.Equal(r.Versions, []string{"1.2.3"}) || !r.From.Equal(noon) || !r.To.Equal(noon.Add(5*time.Second)) {
				t.Errorf("%s: %+v", moment, r)
			}
		}
		end()
	}
	Decide("RolloutGroup a/b", zones(noon, "secret-v7"))
	if r := again(t, dir); r.Decisions != 2 {
		t.Errorf("it records after its end: %+v", r)
	}
}

// A decision that another program has made in another way is named, unit by unit.
func TestADifferenceIsNamed(t *testing.T) {
	o := zones(noon, "secret-v1")
	o.Root.Pause, o.Root.Gates, o.Root.Lock, o.Root.Children[0].Pause = nil, nil, nil, nil
	plan := rollout.Decide(o)
	d := Decision{Version: "0.9.0", Of: "RolloutGroup a/b", Observed: o, Decided: decided(&plan)}
	if len(d.Steps) != 1 {
		t.Fatalf("there are %d steps, want 1: %+v", len(d.Steps), plan)
	}
	d.Steps, d.Phase, d.Release, d.Wake = nil, rollout.PhaseComplete, true, noon
	for i := range d.Waits {
		if d.Waits[i].Reason == "Blocked" {
			d.Waits[i].Until = noon
		}
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "000000001"+extension))
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(f)
	if err := errors.Join(s.encode(&d), s.Close()); err != nil {
		t.Fatal(err)
	}
	r := again(t, dir)
	if len(r.Differing) != 1 || r.Differing[0].Version != "0.9.0" {
		t.Fatalf("differing: %+v", r.Differing)
	}
	want := []string{
		"lock: releases it -> nothing", "looks again: 4 May 12:00:00 UTC -> nothing", "phase: Complete -> Progressing",
		`unit secret-zone-a/secret-a-0: nothing -> step 1, from "secret-v1" to "secret-v2"`,
		"unit secret-zone-b/secret-b-0: waits (Blocked) until 4 May 12:00:00 UTC -> waits (Blocked)",
		"unit secret-zone-b/secret-b-1: waits (Blocked) until 4 May 12:00:00 UTC -> waits (Blocked)",
	}
	if got := r.Differing[0].Differences; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The folder never has more than its size, by about the last decision, and keeps the newest. A manager that starts again goes on in it.
func TestTheRecordIsBounded(t *testing.T) {
	dir, last := t.TempDir(), time.Time{}
	for range 3 {
		end := starts(t, Options{Dir: dir, Size: 16 << 10})
		for i := range 400 {
			last = noon.Add(time.Duration(i) * time.Second)
			o := zones(last, "v1")
			o.Root.Children[0].Name = fmt.Sprint(rollout.Clock(last), i*7919, i*104729)
			Decide("RolloutGroup a/b", o)
		}
		end()
	}
	var total int64
	files, err := filesIn(dir)
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if r := again(t, dir); err != nil || len(files) != parts || total > 20<<10 || r.Decisions < parts || !r.To.Equal(last) {
		t.Errorf("%d files of %d bytes, %d decisions until %s: %v", len(files), total, r.Decisions, r.To, err)
	}
}

// Of a process that was killed all whole decisions remain, also in the middle of a record; what is no record is an error.
func TestAFileThatIsCut(t *testing.T) {
	dir := t.TempDir()
	end := starts(t, Options{Dir: dir})
	Decide("a", zones(noon, "secret-v1"))
	Decide("b", zones(noon, "secret-v1"))
	end()
	files, err := filesIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for n := range len(text) {
		cut := filepath.Join(t.TempDir(), "cut")
		if err := os.WriteFile(cut, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		most = max(most, again(t, cut).Decisions)
	}
	if most != 2 {
		t.Errorf("%d decisions are read, want 2", most)
	}
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none"), "replay_test.go"} {
		if _, err := Again("1.2.4", []string{path}); err == nil {
			t.Errorf("%s is read as a record", path)
		}
	}
}

// Without names, the record has none of them, and still tells whether another program decides in the same way.
func TestNamesAreHidden(t *testing.T) {
	dir := t.TempDir()
	end := starts(t, Options{Dir: dir, HideNames: true})
	Decide("RolloutGroup secret/b", zones(noon, "secret-v1"))
	Decide("RolloutGroup secret/c", zones(noon, "secret-v1"))
	end()
	if r := again(t, dir); r.Decisions != 2 || len(r.Differing) > 0 {
		t.Errorf("%+v", r)
	}
	files, err := filesIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		zip, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(zip); err != nil || strings.Contains(string(all), "secret") {
			t.Errorf("a name is left: %v", err)
		}
	}
}

// What cannot be written stops no decision, and is logged once; and there is one record in a process.
func TestARecordThatCannotBeWritten(t *testing.T) {
	dir, logged := filepath.Join(t.TempDir(), "made"), 0
	starts(t, Options{Dir: dir, Size: parts, Log: funcr.New(func(_, _ string) { logged++ }, funcr.Options{})})
	if _, err := Start(Options{Dir: t.TempDir(), Size: MinSize, Log: logr.Discard()}); err == nil {
		t.Error("two records are in one process")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"a", "b"} {
		if p := Decide(of, zones(noon, "secret-v1")); p.Phase == "" {
			t.Error("nothing is decided")
		}
	}
	if logged != 1 {
		t.Errorf("%d lines are logged, want 1", logged)
	}
}
