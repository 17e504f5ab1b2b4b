//go:build identity

package cli_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// page is one that a browser shows.
type page struct {
	status int
	at     *url.URL
	text   string
}

// send sends a request, and follows where the answer leads.
func (v *visitor) send(r *http.Request) *page {
	v.t.Helper()
	answer, text := v.answer(r)
	return &page{answer.StatusCode, answer.Request.URL, text}
}

// open opens an address.
func (v *visitor) open(address string) *page {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.send(r)
}

// link opens the link of a page whose address ends with, or has, a text.
func (v *visitor) link(on *page, has string) *page {
	v.t.Helper()
	for _, n := range elements(v.t, on, "a") {
		if to := attribute(n, "href"); strings.Contains(to, has) {
			return v.open(on.resolve(v.t, to))
		}
	}
	v.t.Fatalf("no link to %q on %s: %s", has, on.at, on.text)
	return nil
}

// submit sends the first form of a page, or the one that has a field with a value, filled in.
func (v *visitor) submit(on *page, fill url.Values) *page {
	v.t.Helper()
	for _, f := range elements(v.t, on, "form") {
		values, matches := url.Values{}, strings.EqualFold(attribute(f, "method"), http.MethodPost)
		for n := range f.Descendants() {
			if n.Type != html.ElementNode || n.Data != "input" {
				continue
			}
			name := attribute(n, "name")
			values.Set(name, attribute(n, "value"))
			if want := fill.Get(name); want != "" && attribute(n, "type") == "hidden" && want != values.Get(name) {
				matches = false
			}
		}
		if !matches {
			continue
		}
		for name := range fill {
			values.Set(name, fill.Get(name))
		}
		r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, on.resolve(v.t, attribute(f, "action")), strings.NewReader(values.Encode()))
		if err != nil {
			v.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", on.at.Scheme+"://"+on.at.Host)
		return v.send(r)
	}
	v.t.Fatalf("no form for %v on %s: %s", fill, on.at, on.text)
	return nil
}

func (p *page) resolve(t *testing.T, to string) string {
	t.Helper()
	at, err := p.at.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return at.String()
}

func elements(t *testing.T, on *page, tag string) (found []*html.Node) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(on.text))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == tag {
			found = append(found, n)
		}
	}
	return found
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
