package dashboard

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
)

// queryOf names an object in a query.
func queryOf(ref describe.Ref) string {
	return url.QueryEscape(ref.String()) + "&namespace=" + url.QueryEscape(ref.Namespace)
}

// show is the page of what comes next.
func (v *nextView) show(now time.Time) []*html.Node {
	nodes := []*html.Node{el("h1", "Next"), v.form()}
	if len(v.Rollouts) == 0 && v.If == nil {
		return append(nodes, el("p", "No rollout is under way."))
	}
	for i := range v.Rollouts {
		nodes = append(nodes, v.course(now, &v.Rollouts[i])...)
	}
	return append(nodes, command(v.typed()))
}

// typed is the command that says the same.
func (v *nextView) typed() string {
	words := []string{"spillway", "forecast"}
	if v.Object != "" {
		words = append(words, v.Object)
	}
	if v.Namespace != "" {
		words = append(words, "-n", v.Namespace)
	}
	for _, text := range v.Ifs {
		words = append(words, "--if", text)
	}
	return strings.Join(words, " ")
}

// form asks for an object, and for what may happen.
func (v *nextView) form() *html.Node {
	given := ""
	if len(v.Ifs) > 0 {
		given = v.Ifs[0]
	}
	input := func(name, label, value, hint string) *html.Node {
		return el("label", label+" ", el("input", at("name", name), at("value", value), at("placeholder", hint), at("autocomplete", "off"), at("id", "ask-"+name)))
	}
	return el("form", at("action", "/next"), at("class", "ask"),
		input("object", "Object", v.Object, "rolloutgroup/ingester"), input("namespace", "Namespace", v.Namespace, ""),
		input("if", "What if", given, forecast.Pause+"=zone-b"), el("button", "Forecast"),
		el("p", at("class", "hint"), "What may happen: "+strings.Join(v.Suppositions, "=NAME, ")+"=NAME"))
}

// course is how one rollout goes on, beside how it would.
func (v *nextView) course(now time.Time, c *forecast.Course) []*html.Node {
	heads := []string{"Step", "Begins"}
	other := v.other(c)
	if v.If != nil {
		heads = append(heads, "If "+strings.Join(v.Ifs, " and "))
	}
	begins := map[string][]describe.Range{}
	if other != nil {
		for i := range other.Steps {
			text := other.Steps[i].String()
			begins[text] = append(begins[text], other.Steps[i].When)
		}
	}
	rows := each(c.Steps, func(s *forecast.Coming) *html.Node {
		text := s.String()
		row := el("tr", el("th", at("scope", "row"), strings.TrimPrefix(text, c.Object+" ")), el("td", describe.In(now, s.When)))
		if v.If == nil {
			return row
		}
		cell := el("td", "-")
		if r := begins[text]; len(r) > 0 {
			cell, begins[text] = el("td", describe.In(now, r[0])), r[1:]
		}
		row.AppendChild(cell)
		return row
	})
	nodes := []*html.Node{
		el("h2", c.Object, el("small", " "+c.Namespace)),
		el("p", at("class", "sentence"), ends(now, c)),
		timeline(now, c),
		table("Steps of "+c.Object, heads, rows),
	}
	if other != nil {
		nodes = slices.Insert(nodes, 2, el("p", at("class", "sentence"), "If "+strings.Join(v.Ifs, " and ")+": "+ends(now, other)))
	}
	return nodes
}

// other is how a rollout would go on, nil if nothing is supposed.
func (v *nextView) other(c *forecast.Course) *forecast.Course {
	if v.If == nil {
		return nil
	}
	i := slices.IndexFunc(v.If.Rollouts, func(o forecast.Course) bool {
		return o.Ring == c.Ring && o.Namespace == c.Namespace && o.Object == c.Object
	})
	if i < 0 {
		return nil
	}
	return &v.If.Rollouts[i]
}

// ends says when a rollout ends, or why it does not.
func ends(now time.Time, c *forecast.Course) string {
	switch {
	case c.Waits != nil:
		return "It waits: " + c.Waits.Sentence
	case c.Ends == nil:
		return "It waits."
	case c.Decides != "":
		return "It ends " + describe.In(now, *c.Ends) + "; " + c.Decides[strings.LastIndex(c.Decides, "/")+1:] + " decides when."
	default:
		return "It ends " + describe.In(now, *c.Ends) + "."
	}
}

// Sizes of the time line, in pixels.
const (
	timelineWidth, timelineRow = 900, 14
	timelineRows               = 60
)

// timeline draws when each step begins, with the earliest and the latest time; nil of a
// rollout that does not end or is over already.
func timeline(now time.Time, c *forecast.Course) *html.Node {
	if c.Ends == nil || len(c.Steps) == 0 || !c.Ends.Latest.After(now) {
		return nil
	}
	steps := c.Steps[:min(timelineRows, len(c.Steps))]
	whole := c.Ends.Latest.Sub(now)
	x := func(t time.Time) int { return int(timelineWidth * max(0, t.Sub(now)) / whole) }
	height := len(steps)*timelineRow + timelineRow
	svg := el("svg", at("class", "timeline"), pixels("width", timelineWidth), pixels("height", height),
		at("viewBox", fmt.Sprintf("0 0 %d %d", timelineWidth, height)), at("role", "img"), at("aria-label", c.Object+": "+ends(now, c)))
	for i := range steps {
		when, y := steps[i].When, i*timelineRow
		svg.AppendChild(el("rect", at("class", "range"), pixels("x", x(when.Earliest)), pixels("y", y+4), pixels("width", max(2, x(when.Latest)-x(when.Earliest))), pixels("height", timelineRow-8),
			el("title", steps[i].String()+": "+describe.In(now, when))))
		svg.AppendChild(el("rect", at("class", "expected"), pixels("x", x(when.Expected)), pixels("y", y+1), pixels("width", 3), pixels("height", timelineRow-2)))
	}
	svg.AppendChild(el("rect", at("class", "end"), pixels("x", x(c.Ends.Earliest)), pixels("y", height-timelineRow+2), pixels("width", max(3, x(c.Ends.Latest)-x(c.Ends.Earliest))), pixels("height", timelineRow-4), el("title", ends(now, c))))
	return el("figure", svg)
}
