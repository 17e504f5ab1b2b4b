// Package forms fills in the forms of pages, as a browser does.
package forms

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Of is the form of a page, with a reason: what a browser sends if the reader adds nothing else.
func Of(t testing.TB, page string) url.Values {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	values := url.Values{}
	for n := range root.Descendants() {
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
		}
		if n.Data == "input" && attributes["name"] != "" {
			values.Set(attributes["name"], attributes["value"])
		}
	}
	values.Set("reason", "incident 42")
	return values
}
