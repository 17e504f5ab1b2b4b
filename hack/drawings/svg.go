package main

import (
	"fmt"
	"html"
	"strings"
)

// The measures of a picture, in its own units.
const (
	margin               = 20
	boxWidth, boxHeight  = 190, 66
	columnGap, rowGap    = 84, 44
	lineHeight, headroom = 18, 40
	labelRise            = 8
)

// style has the colors. They follow the reader's preference; each text stands on a color of
// the picture's own, so that it can be read on any page.
const style = `
.ground{fill:#ffffff;stroke:#d0d7de}
.plain{fill:#f6f8fa;stroke:#57606a}
.user{fill:#fff3d6;stroke:#8a5a00}
.engine{fill:#ddeaff;stroke:#0a4fb3}
.outside{fill:#e7f6ea;stroke:#1a6b33}
rect{stroke-width:1.5}
text{fill:#1f2328;font:14px ui-sans-serif,system-ui,sans-serif}
.title{font-weight:600;font-size:15px}
.label{font-size:12px;fill:#424a53}
path{fill:none;stroke:#424a53;stroke-width:1.5}
.head{fill:#424a53;stroke:none}
@media (prefers-color-scheme:dark){
.ground{fill:#161b22;stroke:#3d444d}
.plain{fill:#21262d;stroke:#8b949e}
.user{fill:#3a2d0c;stroke:#d9a441}
.engine{fill:#10284f;stroke:#6ca4f8}
.outside{fill:#12301c;stroke:#56b870}
text{fill:#f0f3f6}
.label{fill:#c9d1d9}
path{stroke:#c9d1d9}
.head{fill:#c9d1d9;stroke:none}
}
`

func (b box) x() int { return margin + b.column*(boxWidth+columnGap) }
func (b box) y() int { return margin + headroom + b.row*(boxHeight+rowGap) }

// svg is the picture.
func (d *drawing) svg() string {
	width, height := 0, 0
	for _, b := range d.boxes {
		width, height = max(width, b.x()+boxWidth+margin), max(height, b.y()+boxHeight+margin)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"title alt\">\n", width, height, width, height)
	fmt.Fprintf(&s, "<title id=\"title\">%s</title>\n<desc id=\"alt\">%s</desc>\n<style>%s</style>\n", html.EscapeString(d.title), html.EscapeString(d.alt), style)
	s.WriteString(`<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="head" d="M0 0L10 5L0 10z"/></marker></defs>` + "\n")
	fmt.Fprintf(&s, "<rect class=\"ground\" x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", width-2, height-2)
	fmt.Fprintf(&s, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", margin, margin+14, html.EscapeString(d.title))
	for _, a := range d.arrows {
		a.write(&s)
	}
	for _, b := range d.boxes {
		b.write(&s)
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func (b box) write(s *strings.Builder) {
	fmt.Fprintf(s, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", b.style, b.x(), b.y(), boxWidth, boxHeight)
	top := b.y() + boxHeight/2 - (len(b.lines)-1)*lineHeight/2 + 5
	for i, line := range b.lines {
		fmt.Fprintf(s, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", b.x()+boxWidth/2, top+i*lineHeight, html.EscapeString(line))
	}
}

// write draws the arrow: across in a row, down in a column, and otherwise around a corner
// into the middle of the side.
func (a arrow) write(s *strings.Builder) {
	line, x, y := a.route()
	fmt.Fprintf(s, "<path d=\"%s\" marker-end=\"url(#head)\"/>\n", line)
	if a.label != "" {
		fmt.Fprintf(s, "<text class=\"label\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x, y, html.EscapeString(a.label))
	}
}

// route is the line of the arrow, and where its label stands.
func (a arrow) route() (line string, x, y int) {
	from, to := a.from, a.to
	middleX, middleY := from.x()+boxWidth/2, from.y()+boxHeight/2
	right, left := from.x()+boxWidth, to.x()
	if to.column < from.column {
		right, left = from.x(), to.x()+boxWidth
	}
	bottom, top := from.y()+boxHeight, to.y()
	if to.row < from.row {
		bottom, top = from.y(), to.y()+boxHeight
	}
	switch {
	case from.row == to.row:
		return fmt.Sprintf("M%d %dH%d", right, middleY, left), (right + left) / 2, middleY - labelRise
	case from.column == to.column:
		return fmt.Sprintf("M%d %dV%d", middleX, bottom, top), middleX + boxWidth/4, (bottom+top)/2 + labelRise/2
	default:
		corner := (right + left) / 2
		return fmt.Sprintf("M%d %dH%dV%dH%d", right, middleY, corner, to.y()+boxHeight/2, left), corner, middleY - labelRise
	}
}
