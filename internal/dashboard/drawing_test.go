package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/rollout"
)

// fits fails unless all shapes are in the frame of the drawing.
func fits(t *testing.T, d *drawing) {
	t.Helper()
	if d == nil {
		t.Fatal("nothing is drawn")
	}
	for _, s := range d.Shapes {
		if s.X < 0 || s.Y < 0 || s.X+s.Width > d.Width || s.Y+s.Height > d.Height {
			t.Fatalf("%+v is outside of %d,%d", s, d.Width, d.Height)
		}
	}
}

// says is what the shapes with a frame say, in their order.
func says(d *drawing) string {
	var texts []string
	for _, s := range d.Shapes {
		if s.Is == isName {
			texts = append(texts, s.Text)
		}
	}
	return strings.Join(texts, "|")
}

// A drawing has a square for each part, and stays in its frame, however many there are.
func TestColumns(t *testing.T) {
	if d := draw(&describe.Unit{Units: []describe.Unit{{Ref: describe.Ref{Name: "x"}}}}); d != nil {
		t.Errorf("a drawing of nothing: %+v", d)
	}
	for _, clusters := range []int{1, 59, 61, 499, 10000} {
		stage := func(name string) describe.Unit {
			s := describe.Unit{Ref: describe.Ref{Kind: "Stage", Name: name}, Total: clusters, Done: clusters / 2, Counted: "clusters"}
			for i := range clusters / 3 {
				s.Units = append(s.Units, describe.Unit{Ref: describe.Ref{Kind: "Cluster", Name: fmt.Sprint("c", i)}, Phase: rollout.PhaseProgressing})
			}
			return s
		}
		d := draw(&describe.Unit{Ref: describe.Ref{Kind: "Module", Name: "shop"}, Units: []describe.Unit{stage("canary"), stage("rest"), stage("last"), stage("never")}})
		fits(t, d)
		squares, links := 0, 0
		for _, s := range d.Shapes {
			if s.Width > 0 {
				squares++
			}
			if s.Of != nil {
				links++
			}
		}
		if squares != 4*clusters || d.Width > drawingWidth+columnGap || links > linked {
			t.Errorf("%d squares and %d links for 4 times %d clusters, %d wide", squares, links, clusters, d.Width)
		}
	}
}

// A plan is a tree of phases and steps; what it has not reached yet differs from what
// waits.
func TestTree(t *testing.T) {
	began := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	step := func(name string, phase rollout.Phase, sentence string) describe.Unit {
		return describe.Unit{Ref: describe.Ref{Kind: "Step", Name: name}, Phase: phase, Sentence: sentence}
	}
	held := step("nodes/second", rollout.PhaseWaiting, "")
	held.Since = &began
	plan := describe.Unit{Ref: describe.Ref{Kind: "Plan", Name: "deploy"}, Done: 1, Total: 5, Counted: "steps", Units: []describe.Unit{
		step("prepare/config", rollout.PhaseComplete, ""), step("nodes/first", rollout.PhaseFailed, "no Pod is ready"), held,
		step("verify/quorum", rollout.PhaseWaiting, ""), step("verify/a-step-with-a-name-that-is-too-long", rollout.PhaseWaiting, ""),
	}}
	d := draw(&describe.Unit{Ref: describe.Ref{Kind: "Instance", Name: "zookeeper"}, Units: []describe.Unit{plan}})
	fits(t, d)
	if got, want := says(d), "deploy|✓ prepare|✓ config|✗ nodes|✗ first|second|verify|quorum|a-step-with-a-name-th…"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want := "plan deploy: 1/5 steps; phase prepare: config Complete; phase nodes: first Failed no Pod is ready, second Waiting; phase verify: quorum not reached yet, a-step-with-a-name-that-is-too-long not reached yet"
	if d.Text != want {
		t.Errorf("got  %s\nwant %s", d.Text, want)
	}
}

// What is rolled for an object stands in lanes, and its queue in its order.
func TestQueue(t *testing.T) {
	unit := func(name string, phase rollout.Phase, position int) describe.Unit {
		return describe.Unit{Ref: describe.Ref{Kind: "Deployment", Namespace: "shop", Name: name}, Phase: phase, Position: position}
	}
	of := describe.Unit{Ref: describe.Ref{Kind: "ConfigMap", Name: "prices"}, Cause: true, Units: []describe.Unit{
		unit("web", rollout.PhaseWaiting, 2), unit("basket", rollout.PhaseProgressing, 0), unit("search", rollout.PhaseWaiting, 1),
		unit("mailer", rollout.PhasePaused, 0), unit("done", rollout.PhaseComplete, 0),
	}}
	d := draw(&of)
	fits(t, d)
	if want := "configmap/prices; done: done; rolling: basket; in the queue: 1. search, 2. web; held: mailer"; d.Text != want {
		t.Errorf("got  %s\nwant %s", d.Text, want)
	}
	for i := range 1000 {
		of.Units = append(of.Units, unit(fmt.Sprint("w", i), rollout.PhaseWaiting, i+3))
	}
	d = draw(&of)
	fits(t, d)
	if len(d.Shapes) > 100 || !strings.Contains(d.Text, "12. w9, and 990 more") {
		t.Errorf("%d shapes: %s", len(d.Shapes), d.Text)
	}
	if d := draw(&describe.Unit{Cause: true}); d != nil {
		t.Errorf("a drawing of nothing: %+v", d)
	}
}

// The time line has all steps up to the latest end.
func TestTimeline(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	in := func(minutes int) describe.Range {
		at := now.Add(time.Duration(minutes) * time.Minute)
		return describe.Range{Earliest: at.Add(-time.Minute), Expected: at, Latest: at.Add(time.Minute)}
	}
	ends := in(500)
	c := forecast.Course{Ends: &ends}
	if d := timeline(now, &c, "x"); d != nil {
		t.Errorf("a drawing of nothing: %+v", d)
	}
	for i := range 500 {
		c.Steps = append(c.Steps, forecast.Coming{When: in(i)})
	}
	d := timeline(now, &c, "x")
	fits(t, d)
	if len(d.Shapes) != 2*timelineRows+1 {
		t.Errorf("%d shapes", len(d.Shapes))
	}
	if d := timeline(now.Add(24*time.Hour), &c, "x"); d != nil {
		t.Errorf("a drawing of what is over: %+v", d)
	}
}
