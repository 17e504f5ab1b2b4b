package display

import (
	"strings"
	"testing"
	"time"
)

// A command that ends soon says nothing; one that takes its time overwrites one
// line, at most ten times a second, and leaves none.
func TestProgress(t *testing.T) {
	t.Parallel()
	now, out := time.Unix(0, 0), &strings.Builder{}
	p := NewProgress(out, func() time.Time { return now })
	p.Show("no terminal")
	p.width = 20
	p.Show("too early")
	p.Clear()
	if out.Len() > 0 {
		t.Errorf("%q", out)
	}
	now = now.Add(progressAfter)
	for range 3 {
		p.Show("a text that does not fit in a line")
	}
	now = now.Add(progressEvery)
	p.Show("second")
	p.Clear()
	p.Clear()
	const line = "\r\x1b[K"
	if lines := strings.Split(out.String(), line); len(lines) != 4 || len([]rune(lines[1])) > 19 || lines[2] != "second" || lines[3] != "" {
		t.Errorf("%q", lines)
	}
}
