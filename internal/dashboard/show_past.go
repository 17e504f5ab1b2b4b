package dashboard

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

// show is the page of all that has a past.
func (v *rolledView) show(time.Time) []*html.Node {
	nodes := []*html.Node{el("h1", "Past"), v.reading("/past")}
	if len(v.Units) > 0 {
		return append(nodes, table("What is rolled", []string{"Ring", "Namespace", "Object", "Phase"}, each(v.Units, func(u *describe.Unit) *html.Node {
			return el("tr", el("td", u.Ring), el("td", u.Namespace), el("th", at("scope", "row"), link("past", u.Ref)), el("td", phase(u.Phase)))
		})))
	}
	if !v.isPart() {
		nodes = append(nodes, el("p", "No ring rolls anything here."))
	}
	return nodes
}

// show is the page of what was rolled of an object.
func (v *pastView) show(now time.Time) []*html.Node {
	nodes := []*html.Node{el("h1", "Past of "+v.Ref.String()), el("p", "namespace "+v.Ref.Namespace+" · ", el("a", at("href", pathOf("why", v.Ref)), "why"))}
	if len(v.Entries) == 0 {
		return append(nodes, el("p", "Nothing was rolled, as far as objects and Events still say."))
	}
	nodes = append(nodes, v.form())
	if c := v.Comparison; c != nil {
		return append(nodes, table("Two rollouts of "+v.Ref.String(), []string{"Of", c.A.What, c.B.What}, each(c.Rows, showRow)))
	}
	return append(nodes, el("ol", at("class", "chain"), each(v.Entries, func(e *history.Entry) *html.Node { return showEntry(now, e) })))
}

// form asks which two rollouts are to be compared, nil if there are no two.
func (v *pastView) form() *html.Node {
	if len(v.Entries) < 2 {
		return nil
	}
	choice := func(label string, chosen int) *html.Node {
		of := el("select", at("name", "compare"))
		for i := range v.Entries {
			name := history.Name(v.Entries, i)
			option := el("option", at("value", name), v.Entries[i].What)
			if name != v.Entries[i].What {
				option.AppendChild(el("span", " ("+name+")").FirstChild)
			}
			if i == chosen {
				option.Attr = append(option.Attr, html.Attribute{Key: "selected", Val: "selected"})
			}
			of.AppendChild(option)
		}
		return el("label", label+" ", of)
	}
	a, b := 1, 0
	if c := v.Comparison; c != nil {
		is := func(of *history.Entry) func(history.Entry) bool {
			return func(e history.Entry) bool { return e.What == of.What && e.UID == of.UID && e.To == of.To }
		}
		a, b = slices.IndexFunc(v.Entries, is(&c.A)), slices.IndexFunc(v.Entries, is(&c.B))
	}
	path, _, _ := strings.Cut(pathOf("past", v.Ref), "?")
	return el("form", at("class", "ask"), at("action", path), hidden("namespace", v.Ref.Namespace), choice("Compare", a), choice("with", b), el("button", "Compare"))
}

// showRow is one thing that is known of two rollouts; what differs is bold.
func showRow(r *history.Row) *html.Node {
	cell := func(text string) *html.Node {
		switch {
		case text == "":
			return el("td", "-")
		case r.Differs:
			return el("td", el("strong", text))
		default:
			return el("td", text)
		}
	}
	return el("tr", el("th", at("scope", "row"), r.About), cell(r.A), cell(r.B))
}

// showEntry is one rollout: who wanted it, what changed, how long it took and how it ended.
func showEntry(now time.Time, e *history.Entry) *html.Node {
	title := e.What
	if e.To != "" {
		title += " to " + e.To
	}
	about := el("p", at("class", "about"), e.Outcome+" ", ago(now, e.Started))
	if e.Started != nil {
		about.AppendChild(el("span", " ago, took "+took(now, e.Started, e.Ended)))
	}
	if e.By != "" {
		about.AppendChild(el("span", " · by "+e.By))
	}
	item := el("li", el("p", at("class", "sentence"), title), about)
	for _, text := range []string{e.Change, e.Message} {
		if text != "" {
			item.AppendChild(el("p", text))
		}
	}
	if len(e.Units) > 0 {
		item.AppendChild(el("ul", each(e.Units, func(p *history.Part) *html.Node {
			return el("li", p.String()+": "+strings.TrimSpace(p.Outcome+" "+took(now, p.Started, p.Ended)))
		})))
	}
	if len(e.Notes) > 0 {
		item.AppendChild(el("ul", at("class", "notes"), each(e.Notes, func(n *history.Event) *html.Node {
			return el("li", describe.Moment(n.At)+" "+n.About.String()+" "+n.Reason+": "+n.Text)
		})))
	}
	return item
}

// took is how long something has taken, up to now if it goes on.
func took(now time.Time, started, ended *time.Time) string {
	switch {
	case started == nil:
		return ""
	case ended == nil:
		return max(0, now.Sub(*started)).Truncate(time.Second).String() + " so far"
	default:
		return ended.Sub(*started).Round(100 * time.Millisecond).String()
	}
}
