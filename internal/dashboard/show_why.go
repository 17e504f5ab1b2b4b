package dashboard

import (
	"time"

	"golang.org/x/net/html"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
)

// show is the page of why an object waits.
func (v *whyView) show(now time.Time) []*html.Node {
	return []*html.Node{
		el("h1", v.Ref.String()), done(v.Said),
		el("p", "namespace "+v.Ref.Namespace+" · ", el("a", at("href", pathOf("past", v.Ref)), "past"), " · ",
			el("a", at("href", "/next?object="+queryOf(v.Ref)), "next")),
		v.acts(),
		el("ol", at("class", "chain"), each(v.Chain.Links, func(l *chain.Link) *html.Node { return showLink(now, l) })),
		picture(v.Drawing),
		facts(v.Chain.Facts),
	}
}

// showLink is a link of the chain: what it says, since when, and the command that helps.
func showLink(now time.Time, l *chain.Link) *html.Node {
	about := el("p", at("class", "about"), link("why", l.Ref), " ", phase(l.Phase))
	if l.Reason != "" {
		about.AppendChild(el("span", " "+string(l.Reason)))
	}
	if l.Since != nil {
		about.AppendChild(el("span", " for ", ago(now, l.Since)))
	}
	if l.Until != nil {
		about.AppendChild(el("span", " · until "+describe.Moment(*l.Until)))
	}
	if l.Deadline != nil {
		about.AppendChild(el("span", " · deadline "+describe.Moment(*l.Deadline)))
	}
	if l.Owner != "" {
		about.AppendChild(el("span", " · "+l.Owner))
	}
	return el("li", el("p", at("class", "sentence"), l.Sentence), about, command(l.First), command(l.Next))
}

// facts is a table of what else is to be known, nil if there is nothing.
func facts(all []describe.Fact) *html.Node {
	if len(all) == 0 {
		return nil
	}
	return table("Facts", []string{"Fact", "Value"}, each(all, func(f *describe.Fact) *html.Node {
		row := el("tr", el("th", at("scope", "row"), f.Name))
		cell := el("td")
		for i, value := range f.Values {
			if i > 0 {
				cell.AppendChild(el("span", " · "))
			}
			cell.AppendChild(el("span", value))
		}
		row.AppendChild(cell)
		return row
	}))
}
