package main

import (
	"errors"
	"fmt"
	"html"
	"strings"
	"time"
)

// The measures of the picture, in its own units and in characters.
const (
	columns            = 92
	textWidth          = 760 // of so many characters
	lineHeight, margin = 21, 22
	bar                = 30
	last               = 6 * time.Second // how long the last moment stays
)

// style is that of a terminal. Each image is visible in its share of the time.
const style = `
.screen{fill:#0d1117;stroke:#3d444d}
text{font:13.5px ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;fill:#e6edf3;white-space:pre}
.head{fill:#8fb8ff;font-weight:600}
.done{fill:#56d364}
.moves{fill:#8fb8ff}
.waits{fill:#e3b341}
.f{visibility:hidden}
@media (prefers-reduced-motion:reduce){.f{animation:none!important}.f:last-of-type{visibility:visible}}
`

// svg is the moving picture of the recording.
func (r *recording) svg() (string, error) {
	if len(r.frames) < 2 {
		return "", errors.New("nothing was recorded: pipe the output of the demo")
	}
	rows := 0
	for _, f := range r.frames {
		rows = max(rows, len(f.lines))
	}
	begin := r.frames[0].at
	whole := r.frames[len(r.frames)-1].at - begin + last
	width, height := textWidth+2*margin, rows*lineHeight+2*margin+bar
	var s strings.Builder
	fmt.Fprintf(&s, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"title\">\n", width, height, width, height)
	fmt.Fprintf(&s, "<title id=\"title\">%s</title>\n<style>%s", "make demo: a user edits config, and workloads roll a few at a time", style)
	for i, f := range r.frames {
		from, to := percent(f.at-begin, whole), 100.0
		if i+1 < len(r.frames) {
			to = percent(r.frames[i+1].at-begin, whole)
		}
		fmt.Fprintf(&s, "@keyframes k%d{0%%{visibility:hidden}%.2f%%{visibility:visible}%.2f%%{visibility:hidden}}\n", i, from, to)
		fmt.Fprintf(&s, ".k%d{animation:k%d %.1fs step-end infinite}\n", i, i, whole.Seconds())
	}
	fmt.Fprintf(&s, "</style>\n<rect class=\"screen\" x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", width-2, height-2)
	fmt.Fprintf(&s, "<text x=\"%d\" y=\"%d\">$ make demo</text>\n", margin, margin+12)
	for i, f := range r.frames {
		fmt.Fprintf(&s, "<g class=\"f k%d\">\n", i)
		for row, line := range f.lines {
			fmt.Fprintf(&s, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class(line), margin, margin+bar+12+row*lineHeight, html.EscapeString(fit(strings.TrimPrefix(line, "# "))))
		}
		s.WriteString("</g>\n")
	}
	s.WriteString("</svg>\n")
	return s.String(), nil
}

func percent(part, whole time.Duration) float64 {
	return 100 * part.Seconds() / whole.Seconds()
}

// class is the style of a line: by its mark, as on a terminal.
func class(line string) string {
	switch []rune(line + " ")[0] {
	case '#':
		return "head"
	case '✓':
		return "done"
	case '↻', '→':
		return "moves"
	case '…':
		return "waits"
	default:
		return "plain"
	}
}

// fit cuts a line that is longer than the screen is wide.
func fit(line string) string {
	runes := []rune(strings.TrimRight(line, " "))
	if len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return string(runes)
}
