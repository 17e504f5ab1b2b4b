package dashboard

import (
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/rollout"
)

// titles are what the acts are called on the pages.
var titles = map[string]string{
	"pause": "Pause", "resume": "Resume", "retry": "Retry", "approve": "Approve", "refuse": "Refuse",
	"rollback": "Roll back", "pin": "Pin a cluster of", "unpin": "Unpin a cluster of",
}

func titleOf(w Wish) string { return titles[w.Verb] + " " + w.Ref.String() }

// actPath is the page that asks before something is done.
func actPath(verb string, ref describe.Ref) string {
	return strings.Replace(pathOf("act", ref), "/act/", "/act/"+verb+"/", 1)
}

// acts are links to what can be done to an object as it is.
func (v *whyView) acts() *html.Node {
	var links []*html.Node
	for _, verb := range v.Verbs {
		if v.mayHelp(verb) {
			links = append(links, el("a", at("class", "act"), at("href", actPath(verb, v.Ref)), titles[verb]))
		}
	}
	for i := range v.Chain.Links {
		if l := &v.Chain.Links[i]; len(v.Verbs) > 0 && l.Kind == describe.KindGate && l.Ref != v.Ref {
			for _, verb := range []string{"approve", "refuse"} {
				links = append(links, el("a", at("class", "act"), at("href", actPath(verb, l.Ref)), titles[verb]+" "+l.Name))
			}
		}
	}
	if len(links) == 0 {
		return nil
	}
	return el("nav", at("class", "acts"), at("aria-label", "What you can do"), links)
}

// mayHelp is false of what would certainly do nothing to the object as it is.
func (v *whyView) mayHelp(verb string) bool {
	isPaused := v.Unit != nil && (v.Unit.Paused || v.Unit.Phase == rollout.PhasePaused)
	hasFailed := v.Unit == nil || v.Unit.Phase == rollout.PhaseFailed || v.Unit.Phase == describe.PhaseStalled
	switch verb {
	case "pause":
		return !isPaused
	case "retry":
		return hasFailed
	case "approve", "refuse":
		return v.Ref.Kind == describe.KindGate
	default:
		return true
	}
}

// show is the page that asks before something is done.
func (a *actView) show(time.Time) []*html.Node {
	nodes := []*html.Node{el("h1", titleOf(a.Wish)), el("p", "namespace "+a.Ref.Namespace+" · ", el("a", at("href", pathOf("why", a.Ref)), "why"))}
	if a.Problem != "" {
		nodes = append(nodes, el("p", at("class", "note"), at("role", "alert"), a.Problem))
	}
	if a.Said != "" {
		nodes = append(nodes, el("p", at("class", "sentence"), "If you go on: "+a.Said+"."))
	}
	for _, text := range []string{a.Next, a.Foreseen} {
		if text != "" {
			nodes = append(nodes, el("p", text))
		}
	}
	if a.Said != "" && a.Denied != "" {
		nodes = append(nodes, el("p", at("class", "note"), at("id", "denied"), a.Denied))
	}
	return append(nodes, a.form(), command(a.Command))
}

// form asks for the reason, and for what else is to be known.
func (a *actView) form() *html.Node {
	field := func(name, label, value, hint string, more ...any) *html.Node {
		input := el("input", append([]any{at("name", name), at("id", "act-"+name), at("value", value), at("placeholder", hint), at("autocomplete", "off")}, more...)...)
		return el("label", label+" ", input)
	}
	var asked *html.Node
	switch a.Verb {
	case "rollback":
		asked = field("to", "Revision", a.To, "the one before")
	case "pin", "unpin":
		asked = field("cluster", "Cluster", a.Cluster, "")
	}
	var form *html.Node
	if asked != nil {
		form = el("form", at("class", "ask"), at("method", "get"), at("action", actPath(a.Verb, a.Ref)), hidden("namespace", a.Ref.Namespace), asked, el("button", "Show what it does"))
	}
	if a.Said == "" {
		return el("div", form)
	}
	button := el("button", titles[a.Verb])
	if a.Denied != "" {
		button = el("button", at("disabled", "disabled"), at("aria-describedby", "denied"), titles[a.Verb])
	}
	do := el("form", at("class", "ask"), at("method", "post"), at("action", actPath(a.Verb, a.Ref)),
		hidden("token", a.Token), hidden("version", a.Version), hidden("to", a.To), hidden("cluster", a.Cluster), hidden("namespace", a.Ref.Namespace),
		field("reason", "Reason", a.Reason, "incident 42", at("required", "required"), pixels("maxlength", reasonLength)), button)
	return el("div", form, do)
}

func hidden(name, value string) *html.Node {
	return el("input", at("type", "hidden"), at("name", name), at("value", value))
}

// foreseen says what a forecast says of an act, beside what it says without.
func foreseen(now time.Time, verb string, a *forecast.Answer) string {
	if len(a.Rollouts) == 0 || a.If == nil || len(a.If.Rollouts) == 0 {
		return ""
	}
	course := func(c *forecast.Course) string {
		text := strings.TrimSuffix(ends(now, c), ".")
		return strings.ToLower(text[:1]) + text[1:] + "."
	}
	return "As it is, " + course(&a.Rollouts[0]) + " With " + verb + ", " + course(&a.If.Rollouts[0])
}

// done says what was done just before, nil if nothing was.
func done(said string) *html.Node {
	if said == "" {
		return nil
	}
	return el("p", at("class", "note"), at("role", "status"), "Done: "+said+".")
}
