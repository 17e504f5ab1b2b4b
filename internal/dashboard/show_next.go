package dashboard

import (
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/spillway-dev/spillway/internal/dashboard/drawing"
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
	pairs := v.Pairs()
	if len(pairs) == 0 {
		return append(nodes, el("p", "No rollout is under way."))
	}
	for _, p := range pairs {
		nodes = append(nodes, v.course(now, p)...)
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
func (v *nextView) course(now time.Time, p forecast.Pair) []*html.Node {
	c, heads, supposed := p.Any(), []string{"Step", "Begins"}, strings.Join(v.Ifs, " and ")
	nodes := []*html.Node{el("h2", c.Object, el("small", " "+c.Namespace))}
	say := func(of *forecast.Course, prefix string) {
		if of != nil {
			text := prefix + ends(now, of)
			nodes = append(nodes, el("p", at("class", "sentence"), text), picture(drawing.Timeline(now, of, of.Object+": "+text)))
		}
	}
	say(p.Plain, "")
	if v.If != nil {
		heads = append(heads, "If "+supposed)
		say(p.Other, "If "+supposed+": ")
	}
	rows := p.Rows()
	if len(rows) == 0 {
		return nodes
	}
	return append(nodes, table("Steps of "+c.Object, heads, each(rows, func(r *forecast.Row) *html.Node {
		row := el("tr", el("th", at("scope", "row"), r.Text), el("td", begins(now, r.Plain)))
		if v.If != nil {
			row.AppendChild(el("td", begins(now, r.Other)))
		}
		return row
	})))
}

// begins is when a step begins, a dash if it is not taken.
func begins(now time.Time, when *describe.Range) string {
	if when == nil {
		return "-"
	}
	return describe.In(now, *when)
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
