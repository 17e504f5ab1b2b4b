package dashboard

import (
	"fmt"
	"strconv"

	"golang.org/x/net/html"
)

// attribute is one of an element.
type attribute struct{ name, value string }

func at(name, value string) attribute { return attribute{name, value} }

func pixels(name string, value int) attribute { return attribute{name, strconv.Itoa(value)} }

// el is an element of a page. Of the rest, attributes are its own, and strings, elements and
// lists of them are what it contains; those that are nil are left out. What strings say is
// text: it is escaped when the page is written.
func el(tag string, rest ...any) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: tag}
	for _, r := range rest {
		switch r := r.(type) {
		case attribute:
			n.Attr = append(n.Attr, html.Attribute{Key: r.name, Val: r.value})
		case string:
			n.AppendChild(&html.Node{Type: html.TextNode, Data: r})
		case []*html.Node:
			for _, child := range r {
				appendTo(n, child)
			}
		case *html.Node:
			appendTo(n, r)
		default:
			panic(fmt.Sprintf("%T is nothing that a page has", r)) // a mistake of this package
		}
	}
	return n
}

func appendTo(n, child *html.Node) {
	if child != nil {
		n.AppendChild(child)
	}
}

// each is an element for each of some values.
func each[T any](all []T, as func(*T) *html.Node) []*html.Node {
	nodes := make([]*html.Node, len(all))
	for i := range all {
		nodes[i] = as(&all[i])
	}
	return nodes
}
