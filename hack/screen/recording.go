package main

import (
	"slices"
	"strings"
	"time"
)

// together is how soon lines follow one another that belong to one moment.
const together = 120 * time.Millisecond

// recording is what the screen has shown.
type recording struct {
	frames []frame
	// lines are what it shows now: first what does not change, then a row for each unit.
	lines []string
	names []string
	done  bool
}

// frame is the screen from one moment on.
type frame struct {
	at    time.Duration
	lines []string
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
	if n := len(r.frames); n > 0 && at-r.frames[n-1].at < together {
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
	r.done = heading == "Done"
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
