package dashboard

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

//go:embed templates
var files embed.FS

// templates returns the pages. They are parsed when the first one is rendered: most commands
// render none.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"age": func(now, t time.Time) string { return describe.Age(now, &t) }, "moment": describe.Moment, "ago": ago, "took": took, "begins": begins,
		"path": pathOf, "link": linkTo, "badge": badge, "rollouts": tableOf, "waiting": waitingOf, "course": courseOf, "join": strings.Join, "trim": strings.TrimSpace,
	}).ParseFS(files, "templates/*.html"))
})

// view is a page: what a program gets, and what a person sees.
type view struct {
	// file is the template that shows it, Of what it shows.
	file string
	Of   any
	// value is what a program gets.
	value any
	// shared is the name of a page that is the same in all windows that show this version, empty
	// of others.
	shared string

	Title string
	// Version is what was seen when the page was made, of one that is read again when
	// something changes; 0 of others.
	Version int
	// Account is who sees it, empty of the only user.
	Account string
	// Place is what is shown, in words; Now the time at which it is.
	Place string
	Now   time.Time
	// NoManager is why nothing of it is carried out, empty if it is.
	NoManager string
}

// render returns the text of a page.
func (v *view) render() ([]byte, error) {
	page := &bytes.Buffer{}
	err := templates().ExecuteTemplate(page, v.file+".html", v)
	return page.Bytes(), err
}

// write renders and sends a page.
func write(w http.ResponseWriter, status int, v *view) {
	page, err := v.render()
	send(w, status, page, err)
}

// send sends a page that was rendered.
func send(w http.ResponseWriter, status int, page []byte, err error) {
	if err != nil {
		http.Error(w, "this page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page) //nolint:gosec // it is escaped; or the client is gone
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

// page renders a page, unless that was done in the same second.
func (r *rendered) page(v *view) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.Now = v.Now.Truncate(time.Second)
	if r.version != v.Version || !r.second.Equal(v.Now) {
		r.version, r.second, r.pages = v.Version, v.Now, map[string][]byte{}
	}
	if page, ok := r.pages[v.shared]; ok {
		return page, nil
	}
	page, err := v.render()
	if err == nil {
		r.pages[v.shared] = page
	}
	return page, err
}

// pathOf returns the page of an object, empty if it has none or is in another cluster.
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

// link leads to a page, unless the path is empty.
type link struct{ Path, Name string }

func linkTo(page string, ref describe.Ref) link { return link{pathOf(page, ref), ref.String()} }

// class returns the name of a phase in the style sheet.
func class(p rollout.Phase) string { return strings.ToLower(string(p)) }

// badge and ago are written here: a page has thousands of them.

// badge returns a phase as a word, with a class that gives it its color.
func badge(p rollout.Phase) template.HTML {
	if p == "" {
		return ""
	}
	return template.HTML(`<span class="phase is-` + template.HTMLEscapeString(class(p)) + `">` + template.HTMLEscapeString(string(p)) + `</span>`) //nolint:gosec // escaped
}

// ago returns how long ago something was, empty if that is not known.
func ago(now time.Time, t *time.Time) template.HTML {
	if t == nil {
		return ""
	}
	return template.HTML(`<time datetime="` + t.UTC().Format(time.RFC3339) + `" title="` + describe.Moment(*t) + `">` + describe.Age(now, t) + `</time>`) //nolint:gosec // digits
}

// table is one of rollouts. Rows have no methods, which a template is slow to call.
type table struct {
	Caption string
	Rows    []row
}

type row struct {
	Ring, Namespace string
	Object          link
	Phase           template.HTML
	// Total is 0 where nothing is counted.
	Done, Total int
	Amount      string
	Since       template.HTML
	Ends, State string
}

func tableOf(caption string, now time.Time, units []describe.Unit) table {
	rows := make([]row, len(units))
	for i := range units {
		u := &units[i]
		rows[i] = row{u.Ring, u.Namespace, linkTo("why", u.Ref), badge(u.Phase), u.Done, u.Total, u.Amount(), ago(now, u.Since), u.EndsIn(now), u.Sentence}
	}
	return table{caption, rows}
}
