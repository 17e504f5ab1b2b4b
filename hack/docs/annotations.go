package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const annotationsPreface = `# Labels and annotations

<!-- Generated from package vocabulary by make generate; edit the comments there. -->

Find a label or an annotation that nothing reads, or that is in the wrong place:

` + "```sh" + `
spillway lint examples/shop
` + "```" + `

Every setting has a name under ` + "`spillway.dev`" + `, and many have a second name of the project that they come from.
If both are set, the one of Spillway counts.
The lint rule [SPW906](lint.md#spw906) finds such pairs with different values.
`

// vocabularyParts are the sections of the page.
var vocabularyParts = []struct {
	title string
	is    func(vocabulary.Entry) bool
}{
	{"## What users set", func(e vocabulary.Entry) bool { return !e.Written && !e.Order }},
	{"## What commands set\n\nThese are requests that are made once.", func(e vocabulary.Entry) bool { return e.Order }},
	{"## What is written automatically\n\nDo not put these into manifests.", func(e vocabulary.Entry) bool { return e.Written }},
}

// annotationsPage is docs/annotations.md.
func annotationsPage() ([]byte, error) {
	meanings, err := vocabularyComments()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	var missing []error
	b.WriteString(annotationsPreface)
	for _, part := range vocabularyParts {
		fmt.Fprintf(&b, "\n%s\n\n| Name | Where | Meaning |\n|---|---|---|\n", part.title)
		for _, e := range vocabulary.Entries() {
			if !part.is(e) {
				continue
			}
			if meanings[e.Native] == "" {
				missing = append(missing, fmt.Errorf("%s: its declaration in package vocabulary has no comment", e.Native))
			}
			fmt.Fprintf(&b, "| `%s`%s | %s | %s%s |\n", e.Native, otherNames(e), where(e), cell(meanings[e.Native]), values(e))
		}
	}
	return b.Bytes(), errors.Join(missing...)
}

// otherNames are the names of earlier projects.
func otherNames(e vocabulary.Entry) string {
	if len(e.Aliases) == 0 {
		return ""
	}
	return "<br>" + strings.ReplaceAll(codes(e.Aliases), ", ", "<br>")
}

func where(e vocabulary.Entry) string {
	text := string(e.Place)
	if len(e.Kinds) > 0 {
		text += " of " + strings.Join(e.Kinds, ", ")
	}
	return text
}

func values(e vocabulary.Entry) string {
	if len(e.Values) == 0 {
		return ""
	}
	return " Values: " + codes(e.Values) + "."
}

// vocabularyComments are what the comments of package vocabulary say of each name.
func vocabularyComments() (map[string]string, error) {
	f, err := parseFolder("internal/vocabulary")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, file := range f.files {
		for _, kind := range []token.Token{token.VAR, token.CONST} {
			eachSpec(file, kind, func(decl *ast.GenDecl, spec *ast.ValueSpec) {
				comment := spec.Doc.Text()
				if comment == "" && len(decl.Specs) == 1 {
					comment = decl.Doc.Text()
				}
				f.describe(spec, comment, found)
			})
		}
	}
	return found, nil
}

// describe notes what a comment says of the names that a declaration has.
func (f *folder) describe(spec *ast.ValueSpec, comment string, found map[string]string) {
	for i, value := range spec.Values {
		if name := f.keyName(value); name != "" && comment != "" {
			found[name] = meaning(spec.Names[i].Name, comment)
		}
	}
}

// keyName is the native name of a key, or a constant.
func (f *folder) keyName(e ast.Expr) string {
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		name, _ := f.text(e)
		return name
	}
	if name := f.field(literal, "Native"); name != "" || len(literal.Elts) == 0 {
		return name
	}
	name, _ := f.text(literal.Elts[0])
	return name
}

// docLink is a link in a comment of Go.
var docLink = regexp.MustCompile(`\[([A-Z]\w*)\]`)

// meaning is a comment without the name that it begins with.
func meaning(name, comment string) string {
	text := strings.Join(strings.Fields(docLink.ReplaceAllString(comment, "$1")), " ")
	text = strings.TrimPrefix(text, name+" ")
	for _, lead := range []string{"is ", "set to "} {
		text = strings.TrimPrefix(text, lead)
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
