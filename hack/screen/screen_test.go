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
	if !strings.Contains(svg, "A user edits &lt;x&gt; &amp; y") || !strings.Contains(svg, "a lon…<") {
		t.Error(svg)
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
