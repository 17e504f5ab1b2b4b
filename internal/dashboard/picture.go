package dashboard

import (
	"fmt"

	"golang.org/x/net/html"

	"github.com/spillway-dev/spillway/internal/dashboard/drawing"
)

// picture is a drawing as SVG, nil if there is none.
func picture(d *drawing.Drawing) *html.Node {
	if d == nil {
		return nil
	}
	svg := el("svg", at("xmlns", "http://www.w3.org/2000/svg"), pixels("width", d.Width), pixels("height", d.Height),
		at("viewBox", fmt.Sprintf("0 0 %d %d", d.Width, d.Height)), at("role", "group"), at("aria-label", d.Text))
	for i := range d.Shapes {
		svg.AppendChild(shape(&d.Shapes[i]))
	}
	return el("figure", at("tabindex", "0"), at("aria-label", "drawing"), svg) // it may be wider than a telephone
}

func shape(s *drawing.Shape) *html.Node {
	if s.Width == 0 {
		return el("text", pixels("x", s.X), pixels("y", s.Y), at("class", s.Is), s.Text)
	}
	rect := el("rect", pixels("x", s.X), pixels("y", s.Y), pixels("width", s.Width), pixels("height", s.Height))
	if s.Is != "" {
		rect.Attr = append(rect.Attr, html.Attribute{Key: "class", Val: "is-" + s.Is})
	}
	if s.Text != "" {
		rect.AppendChild(el("title", s.Text))
	}
	if s.Of == nil || pathOf("why", *s.Of) == "" {
		return rect
	}
	return el("a", at("href", pathOf("why", *s.Of)), at("aria-label", s.Text), rect)
}
