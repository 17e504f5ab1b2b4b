package main

import (
	"slices"
	"strings"
	"time"
)

// together is how soon lines of a chapter follow one another that belong to one moment.
const together = 120 * time.Millisecond

// recording is what the screen has shown.
type recording struct {
	frames []frame
	// lines are what it shows now: first what does not change, then a row for each unit. In a chapter
	// that is done, as is what a command prints, each line stays.
	lines []string
	names []string
	done  bool
}

// frame is the screen from one moment on.
type frame struct {
	at    time.Duration
	lines []string
}

// The times for which a moment is shown, so that its sentences can be read: the last one of a chapter
// for at least a few seconds, one in which many things move no longer than it needs.
const (
	lookLast, lookShort, lookLong = 3500 * time.Millisecond, 350 * time.Millisecond, 1200 * time.Millisecond
	lookEnd                       = 7 * time.Second
)

// shown is for how long each frame is shown.
func (r *recording) shown() []time.Duration {
	all := make([]time.Duration, len(r.frames))
	for i := range r.frames {
		switch {
		case i+1 == len(r.frames):
			all[i] = lookEnd
		case r.frames[i].lines[0] != r.frames[i+1].lines[0]:
			all[i] = lookLast
		default:
			all[i] = min(max(r.frames[i+1].at-r.frames[i].at, lookShort), lookLong)
		}
	}
	return all
}

// marks begin the line of a unit.
const marks = "✓↻→…✗ "

// read takes the next line. What the demo shows before the first edit is left out.
func (r *recording) read(line string, at time.Duration) {
	if heading, ok := strings.CutPrefix(line, "── "); ok {
		r.head(heading)
	} else if r.lines == nil || strings.TrimSpace(line) == "" {
		return
	} else {
		r.put(line)
	}
	if r.lines == nil {
		return
	}
	if n := len(r.frames); n > 0 && at-r.frames[n-1].at < together && r.frames[n-1].lines[0] == r.lines[0] {
		r.frames[n-1].lines = slices.Clone(r.lines)
		return
	}
	r.frames = append(r.frames, frame{at: at, lines: slices.Clone(r.lines)})
}

// head begins a chapter on an empty screen.
func (r *recording) head(heading string) {
	if len(r.frames) == 0 && !strings.HasPrefix(heading, "A user edits") {
		return
	}
	r.done = heading == "Done" || strings.HasPrefix(heading, "spillway ")
	r.lines, r.names = []string{"# " + heading}, []string{""}
}

// put adds a line, or replaces that of the same unit.
func (r *recording) put(line string) {
	name := unitOf(line)
	if at := slices.Index(r.names, name); !r.done && name != "" && at > 0 {
		r.lines[at] = line
		return
	}
	r.lines, r.names = append(r.lines, line), append(r.names, name)
}

// unitOf is the unit that a line is about, "" if it is about none.
func unitOf(line string) string {
	runes := []rune(line)
	if len(runes) < 3 || !strings.ContainsRune(marks, runes[0]) || runes[1] != ' ' {
		return ""
	}
	if runes[0] == ' ' {
		return "the whole"
	}
	words := strings.Fields(string(runes[2:]))
	if len(words) < 2 || !isKind(words[0]) {
		return words[0]
	}
	return words[0] + " " + words[1]
}

func isKind(word string) bool {
	return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, word)
}
