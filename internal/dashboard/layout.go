package dashboard

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// view is a page: what a program gets, and what a person sees.
type view struct {
	title string
	// version is what was seen when the page was made, of one that is read again when
	// something changes; 0 of others.
	version int
	value   any
	// shared is the name of one that is the same in all windows that show this version, empty of
	// others.
	shared string
	// account is who sees it, empty of the only user.
	account string
	// body makes what is shown at a time.
	body func(now time.Time) []*html.Node
}

// write writes a page of a place.
func write(w http.ResponseWriter, status int, place string, now time.Time, v *view) {
	page, err := render(place, now, v)
	send(w, status, page, err)
}

// render is the text of a page of a place.
func render(place string, now time.Time, v *view) ([]byte, error) {
	page := bytes.NewBufferString("<!DOCTYPE html>\n")
	err := html.Render(page, layout(place, now, v))
	return page.Bytes(), err
}

// send writes a page that was rendered.
func send(w http.ResponseWriter, status int, page []byte, err error) {
	if err != nil {
		http.Error(w, "this page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page) //nolint:gosec // it is escaped; or the client is gone
}

func layout(place string, now time.Time, v *view) *html.Node {
	main := el("main", at("id", "main"), at("tabindex", "-1"), v.body(now))
	if v.version > 0 {
		main.Attr = append(main.Attr, html.Attribute{Key: "data-version", Val: strconv.Itoa(v.version)})
	}
	return el("html", at("lang", "en"),
		el("head",
			el("meta", at("charset", "utf-8")),
			el("meta", at("name", "viewport"), at("content", "width=device-width, initial-scale=1")),
			el("title", v.title+" · Spillway"),
			el("link", at("rel", "icon"), at("href", "/assets/icon.svg")),
			el("link", at("rel", "stylesheet"), at("href", "/assets/style.css")),
			el("script", at("type", "module"), at("src", "/assets/live.js")),
		),
		el("body",
			el("a", at("class", "skip"), at("href", "#main"), "Skip to content"),
			el("header",
				el("strong", "Spillway"),
				el("nav", at("aria-label", "Pages"), el("a", at("href", "/"), "Now"), el("a", at("href", "/next"), "Next"), el("a", at("href", "/past"), "Past")),
				el("span", at("class", "place"), place, accountLink(v.account)),
			),
			el("p", at("id", "lost"), at("role", "status"), at("hidden", "hidden")),
			main,
		),
	)
}

// pathOf is the page of an object, empty of what is none and of what is in another cluster.
func pathOf(page string, ref describe.Ref) string {
	if ref.Cluster != "" || ref.Namespace == "" && ref.Kind != describe.KindClusterPolicy || slices.Contains(describe.NoObjects, ref.Kind) {
		return ""
	}
	kind := strings.ToLower(ref.Kind)
	if group, _, ok := strings.Cut(ref.APIVersion, "/"); ok {
		kind += "." + group
	}
	path := "/" + page + "/" + url.PathEscape(kind) + "/" + url.PathEscape(ref.Name)
	if ref.Namespace != "" {
		path += "?namespace=" + url.QueryEscape(ref.Namespace)
	}
	return path
}

// link is the name of an object, which leads to its page if there is one.
func link(page string, ref describe.Ref) *html.Node {
	path := pathOf(page, ref)
	if path == "" {
		return el("span", ref.String())
	}
	return el("a", at("href", path), ref.String())
}

// phase is a phase as a badge: a word, and a color beside it.
func phase(p rollout.Phase) *html.Node {
	if p == "" {
		return nil
	}
	return el("span", at("class", "phase "+classOf(p)), string(p))
}

func classOf(p rollout.Phase) string { return "is-" + strings.ToLower(string(p)) }

// ago is how long ago something was.
func ago(now time.Time, t *time.Time) *html.Node {
	if t == nil {
		return nil
	}
	return el("time", at("datetime", t.UTC().Format(time.RFC3339)), at("title", describe.Moment(*t)), describe.Age(now, t))
}

// command is one to copy.
func command(text string) *html.Node {
	if text == "" {
		return nil
	}
	return el("p", at("class", "command"), el("code", text), " ", el("button", at("type", "button"), at("class", "copy"), at("hidden", "hidden"), "Copy"))
}

// table is one with a head and a caption.
func table(caption string, heads []string, rows []*html.Node) *html.Node {
	head := el("tr")
	for _, h := range heads {
		head.AppendChild(el("th", at("scope", "col"), h))
	}
	return el("div", at("class", "wide"), at("tabindex", "0"), at("role", "region"), at("aria-label", caption),
		el("table", el("caption", caption), el("thead", head), el("tbody", rows)))
}

// Account is what a person is shown of herself where several people see the pages.
type Account struct {
	User   string
	Groups []string
	// Namespace is the one that she sees, all if it is empty; Visible are others that she may see.
	Namespace string
	Visible   []string
	// Problem is why she does not see it, Ends when she has to log in again.
	Problem string
	Ends    time.Time
	// Token lets her log out; it is empty if she is not logged in here.
	Token string
}

// WriteAccount writes the page of an account, where she chooses the namespace.
func WriteAccount(w http.ResponseWriter, status int, a *Account) {
	v := &view{title: "Account", account: a.User, body: func(time.Time) []*html.Node { return a.show() }}
	write(w, status, "", time.Time{}, v)
}

func (a *Account) show() []*html.Node {
	nodes := []*html.Node{el("h1", "Account")}
	if a.Problem != "" {
		nodes = append(nodes, el("p", at("class", "note"), at("role", "alert"), a.Problem))
	}
	groups := "no groups"
	if len(a.Groups) > 0 {
		groups = "the groups " + strings.Join(a.Groups, ", ")
	}
	nodes = append(nodes,
		el("p", "You are "+a.User+", with "+groups+". You see and do what you may in the cluster."),
		el("form", at("class", "ask"), at("method", "get"), at("action", "/account"),
			el("label", "Namespace ", el("input", at("name", "show"), at("value", a.Namespace))),
			el("button", "Show"),
			el("p", at("class", "hint"), "Empty: all namespaces. ", el("a", at("href", "/account?find"), "Find those that you may see."))),
	)
	if len(a.Visible) > 0 {
		nodes = append(nodes, el("h2", "Namespaces that you may see"), el("ul", each(a.Visible, func(name *string) *html.Node {
			return el("li", el("a", at("href", "/account?"+url.Values{"show": {*name}}.Encode()), *name))
		})))
	}
	if a.Token == "" {
		return nodes
	}
	return append(nodes, el("form", at("method", "post"), at("action", "/logout"),
		el("input", at("type", "hidden"), at("name", "token"), at("value", a.Token)),
		el("p", "You are logged in until "+describe.Moment(a.Ends)+". ", el("button", "Log out"))))
}

// accountLink leads to the account, if there are several.
func accountLink(user string) *html.Node {
	if user == "" {
		return nil
	}
	return el("span", " · ", el("a", at("href", "/account"), user))
}

// rendered keeps the pages that were rendered of one version, so that many windows that hear of
// a change at the same time cost one page. They say how long ago things were, and are kept for the
// second in which that is right.
type rendered struct {
	mu      sync.Mutex
	version int
	second  time.Time
	pages   map[string][]byte
}

// page renders a page at a time, unless that was done in the same second.
func (r *rendered) page(place string, now time.Time, v *view) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	second := now.Truncate(time.Second)
	if r.version != v.version || !r.second.Equal(second) {
		r.version, r.second, r.pages = v.version, second, map[string][]byte{}
	}
	if page, ok := r.pages[v.shared]; ok {
		return page, nil
	}
	page, err := render(place, second, v)
	if err == nil {
		r.pages[v.shared] = page
	}
	return page, err
}
