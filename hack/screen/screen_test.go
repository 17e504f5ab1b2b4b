package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLinesOfAUnitReplaceOneAnother(t *testing.T) {
	r := &recording{}
	for i, line := range []string{
		"starting", "── A small shop", "→ Deployment web is next to roll",
		"── A user edits x", "", "what it means;", "→ Deployment web is next to roll", "… Deployment api is queued", "↻ Deployment web is updating", "✓ Deployment web is up to date",
		"── Done", "rolled  1",
	} {
		r.read(line, time.Duration(i)*time.Second)
	}
	want := [][]string{
		{"# A user edits x"},
		{"# A user edits x", "what it means;"},
		{"# A user edits x", "what it means;", "→ Deployment web is next to roll"},
		{"# A user edits x", "what it means;", "→ Deployment web is next to roll", "… Deployment api is queued"},
		{"# A user edits x", "what it means;", "↻ Deployment web is updating", "… Deployment api is queued"},
		{"# A user edits x", "what it means;", "✓ Deployment web is up to date", "… Deployment api is queued"},
		{"# Done"},
		{"# Done", "rolled  1"},
	}
	if !slices.EqualFunc(r.frames, want, func(f frame, lines []string) bool { return slices.Equal(f.lines, lines) }) {
		t.Errorf("%v", r.frames)
	}
}

func TestPictureIsXML(t *testing.T) {
	r := &recording{}
	r.read("── A user edits <x> & y", 0)
	r.read("✓ "+strings.Repeat("a long line ", 20), time.Second)
	svg, err := r.svg()
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(svg, "A user edits &lt;x&gt; &amp; y") || strings.Count(svg, ">  a long line") == 0 {
		t.Error(svg)
	}
}

// TestTheEndOfAChapterCanBeRead: what a chapter comes to is shown for seconds, and what moves not for
// longer than it needs.
func TestTheEndOfAChapterCanBeRead(t *testing.T) {
	r := &recording{}
	for i, l := range []string{"── A user edits x", "↻ web", "✓ web", "── spillway explain deployment/web", "  state  Waiting", "  next   wait", "── Done"} {
		r.read(l, time.Duration(i)*20*time.Second)
	}
	if got, want := r.shown(), []time.Duration{lookLong, lookLong, lookLast, lookLong, lookLong, lookLast, lookEnd}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := r.frames[5].lines; len(got) != 3 {
		t.Errorf("what a command prints stays: %q", got)
	}
}

// TestAChapterDoesNotReplaceTheOneBefore, however soon it follows.
func TestAChapterDoesNotReplaceTheOneBefore(t *testing.T) {
	r := &recording{}
	for i, l := range []string{"── A user edits x", "✗ web failed", "── spillway explain deployment/web", "web failed", "── Done"} {
		r.read(l, time.Duration(i)*time.Millisecond)
	}
	want := [][]string{{"# A user edits x", "✗ web failed"}, {"# spillway explain deployment/web", "web failed"}, {"# Done"}}
	if !slices.EqualFunc(r.frames, want, func(f frame, lines []string) bool { return slices.Equal(f.lines, lines) }) {
		t.Errorf("%v", r.frames)
	}
}

func TestALongLineIsWrapped(t *testing.T) {
	for text, want := range map[string][]line{
		"# a heading": {{"head", "a heading"}},
		"✓ " + strings.Repeat("0123456789 ", 12): {{"done", "✓ " + strings.TrimSpace(strings.Repeat("0123456789 ", 9))}, {"done", "  0123456789 0123456789 0123456789"}},
		strings.Repeat("x", 120):                 {{"plain", strings.Repeat("x", 110)}, {"plain", "  " + strings.Repeat("x", 10)}},
	} {
		if got := wrapped([]string{text}); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestNothingIsRecordedOfNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.svg")
	for _, args := range [][]string{nil, {file}} {
		if err := run(args, strings.NewReader("nothing\n"), io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file is written: %v", err)
	}
}
