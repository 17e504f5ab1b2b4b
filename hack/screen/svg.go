package main

import (
	"errors"
	"fmt"
	"html"
	"strings"
	"time"
	"unicode/utf8"
)

// The measures of the picture, in its own units and in characters.
const (
	columns            = 110
	textWidth          = 908 // of so many characters
	lineHeight, margin = 21, 22
	bar                = 30
)

// style is that of a terminal. Each image is visible in its share of the time.
const style = `
.screen{fill:#0d1117;stroke:#3d444d}
text{font:13.5px ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;fill:#e6edf3;white-space:pre}
.head{fill:#8fb8ff;font-weight:600}
.done{fill:#56d364}
.moves{fill:#8fb8ff}
.waits{fill:#e3b341}
.fails{fill:#ff7b72}
.f{visibility:hidden}
@media (prefers-reduced-motion:reduce){.f{animation:none!important}.f:last-of-type{visibility:visible}}
`

// svg is the moving picture of the recording.
func (r *recording) svg() (string, error) {
	if len(r.frames) < 2 {
		return "", errors.New("nothing was recorded: pipe the output of the demo")
	}
	rows, whole := 0, time.Duration(0)
	screens := make([][]line, len(r.frames))
	for i, f := range r.frames {
		screens[i] = wrapped(f.lines)
		rows = max(rows, len(screens[i]))
	}
	shown := r.shown()
	for _, d := range shown {
		whole += d
	}
	width, height := textWidth+2*margin, rows*lineHeight+2*margin+bar
	var s strings.Builder
	fmt.Fprintf(&s, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" xml:space=\"preserve\" role=\"img\" aria-labelledby=\"title\">\n", width, height, width, height)
	fmt.Fprintf(&s, "<title id=\"title\">%s</title>\n<style>%s", "make demo: a user edits config, and workloads roll a few at a time", style)
	begin := time.Duration(0)
	for i, d := range shown {
		from, to := percent(begin, whole), percent(begin+d, whole)
		begin += d
		fmt.Fprintf(&s, "@keyframes k%d{0%%{visibility:hidden}%.2f%%{visibility:visible}%.2f%%{visibility:hidden}}\n", i, from, to)
		fmt.Fprintf(&s, ".k%d{animation:k%d %.1fs step-end infinite}\n", i, i, whole.Seconds())
	}
	fmt.Fprintf(&s, "</style>\n<rect class=\"screen\" x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", width-2, height-2)
	fmt.Fprintf(&s, "<text x=\"%d\" y=\"%d\">$ make demo</text>\n", margin, margin+12)
	for i, screen := range screens {
		fmt.Fprintf(&s, "<g class=\"f k%d\">\n", i)
		for row, l := range screen {
			fmt.Fprintf(&s, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", l.class, margin, margin+bar+12+row*lineHeight, html.EscapeString(l.text))
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
	case '✗':
		return "fails"
	default:
		return "plain"
	}
}

// line is one of the screen.
type line struct{ class, text string }

// wrapped are lines that fit the screen. One that is continued is indented by as much as its text is.
func wrapped(lines []string) []line {
	var all []line
	for _, text := range lines {
		class, text := class(text), strings.TrimRight(strings.TrimPrefix(text, "# "), " ")
		indent := strings.Repeat(" ", 2+len(text)-len(strings.TrimLeft(text, " ")))
		for utf8.RuneCountInString(text) > columns {
			runes := []rune(text)
			at := strings.LastIndex(string(runes[:columns+1]), " ")
			if at <= len(indent) {
				at = len(string(runes[:columns]))
			}
			all = append(all, line{class, strings.TrimRight(text[:at], " ")})
			text = indent + strings.TrimLeft(text[at:], " ")
		}
		all = append(all, line{class, text})
	}
	return all
}
