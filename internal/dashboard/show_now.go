package dashboard

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/spillway-dev/spillway/internal/describe"
)

// show is the page of what moves and what waits.
func (v *nowView) show(now time.Time) []*html.Node {
	nodes := []*html.Node{el("h1", "Now"), v.old(now), v.reading(v.path())}
	for _, u := range v.Description.Unseen {
		nodes = append(nodes, el("p", at("class", "note"), "The ring "+u.Ring+" is not shown: "+u.Why))
	}
	if len(v.Waiting) == 0 && len(v.Moving) == 0 && !v.isPart() {
		nodes = append(nodes, el("p", "Nothing moves, and nothing waits."))
	}
	if len(v.Waiting) > 0 {
		shown, more := v.first(len(v.Waiting))
		nodes = append(nodes, el("h2", "What waits"), el("ul", at("class", "causes"), each(v.Waiting[:shown], func(c *cause) *html.Node { return c.show(now) })), more)
	}
	if len(v.Moving) > 0 {
		shown, more := v.first(len(v.Moving))
		nodes = append(nodes, el("h2", "What moves"), units("Rollouts that make progress", now, v.Moving[:shown]), more)
	}
	if len(v.Paused) > 0 {
		nodes = append(nodes, el("h2", "What is paused"), units("Rollouts that are complete, and whose next change waits", now, v.Paused))
	}
	if len(v.Unread) > 0 {
		shown, more := v.first(len(v.Unread))
		nodes = append(nodes, el("h2", "What is being read"), units("Rollouts whose state is not known yet", now, v.Unread[:shown]), more)
	}
	return append(nodes, v.complete(now)...)
}

// path is the address of the page.
func (v *nowView) path() string {
	if v.ListsAll {
		return "/?all"
	}
	return "/"
}

// isPart is true until the first look has ended.
func (s *seen) isPart() bool { return len(s.Reading) > 0 }

// reading says what is not read yet, on a page that shows what is known so far; nil if that is
// all. The script reads the page again; without it, a person does.
func (s *seen) reading(page string) *html.Node {
	if !s.isPart() {
		return nil
	}
	return el("p", at("class", "note"), at("role", "status"),
		"Still reading: "+strings.Join(s.Reading, ", ")+". What is not read yet is shown here as soon as it is. ", el("a", at("href", page), "Read again"))
}

// listed is how much of a kind is listed, unless all is asked for.
const listed = 100

// first is how many of n are listed, and what says that there are more.
func (v *nowView) first(n int) (shown int, more *html.Node) {
	if v.ListsAll || n <= listed {
		return n, nil
	}
	return listed, el("p", fmt.Sprintf("and %d more. ", n-listed), el("a", at("href", "/?all"), "List all"))
}

// old says since when what is shown is not up to date, nil if it is.
func (v *nowView) old(now time.Time) *html.Node {
	if v.Err == nil {
		return nil
	}
	return el("p", at("class", "note"), at("role", "alert"),
		fmt.Sprintf("What you see is from %s, %s ago: %s", describe.Moment(v.At), describe.Age(now, &v.Since), v.Err))
}

// complete counts what is complete, and lists it if that was asked for.
func (v *nowView) complete(now time.Time) []*html.Node {
	if len(v.Complete) == 0 {
		return nil
	}
	counts := make([]string, len(v.Complete))
	for i, c := range v.Complete {
		counts[i] = fmt.Sprintf("%s %d", c.Ring, c.Number)
	}
	nodes := []*html.Node{el("h2", "What is complete"), el("p", strings.Join(counts, ", ")+". ")}
	if v.ListsAll {
		return append(nodes, units("Rollouts that are complete", now, v.All))
	}
	nodes[1].AppendChild(el("a", at("href", "/?all"), "List all"))
	return nodes
}

// show is a cause with what it keeps waiting.
func (c *cause) show(now time.Time) *html.Node {
	place := " in namespace " + c.Of.Namespace
	if c.Of.Namespace == "" {
		place = ""
	}
	said := el("p", at("class", "sentence"), phase(c.Root.Phase), " ", sentence(&c.Root))
	of := el("p", link("why", c.Of), place)
	if c.Root.Since != nil {
		of.AppendChild(el("span", " for ", ago(now, c.Root.Since)))
	}
	if len(c.Held) == 1 && c.Held[0].Ref == c.Of {
		return el("li", said, of)
	}
	const shown = 20
	held := el("ul", each(c.Held[:min(shown, len(c.Held))], func(u *describe.Unit) *html.Node { return el("li", link("why", u.Ref)) }))
	if rest := len(c.Held) - shown; rest > 0 {
		held.AppendChild(el("li", fmt.Sprintf("and %d more", rest)))
	}
	return el("li", said, of, el("details", at("id", "held-"+c.Of.Namespace+"-"+c.Of.String()+"-"+c.Root.Name), el("summary", fmt.Sprintf("%d wait for it", len(c.Held))), held))
}

// sentence is what is said of a unit, of the first of its parts that waits if it says nothing.
func sentence(u *describe.Unit) string {
	if u.Sentence != "" {
		return u.Sentence
	}
	for i := range u.Units {
		if u.Units[i].IsWaiting() {
			return sentence(&u.Units[i])
		}
	}
	return u.String() + " is " + strings.ToLower(string(u.Phase))
}

// units is a table of rollouts.
func units(caption string, now time.Time, all []describe.Unit) *html.Node {
	return table(caption, []string{"Ring", "Namespace", "Object", "Phase", "Done", "Since", "Ends", "State"}, each(all, func(u *describe.Unit) *html.Node {
		return el("tr", el("td", u.Ring), el("td", u.Namespace), el("th", at("scope", "row"), link("why", u.Ref)), el("td", phase(u.Phase)),
			el("td", meter(u)), el("td", ago(now, u.Since)), el("td", u.EndsIn(now)), el("td", u.Sentence))
	}))
}

// meter is how far a rollout is, nil if nothing is counted.
func meter(u *describe.Unit) []*html.Node {
	if u.Total == 0 {
		return nil
	}
	text := u.Amount()
	return []*html.Node{
		el("progress", pixels("max", u.Total), pixels("value", u.Done), at("aria-label", u.String()+": "+text)),
		el("span", " "+text),
	}
}
