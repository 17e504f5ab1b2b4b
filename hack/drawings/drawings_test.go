package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const two = "title: Two\nalt: A leads to B.\nbox a 0 0 user one / <two>\nbox b 1 1 engine three\narrow a b then\n"

func TestPictureIsXML(t *testing.T) {
	d, err := parse(two)
	if err != nil {
		t.Fatal(err)
	}
	svg := d.svg()
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"<title id=\"title\">Two</title>", "A leads to B.", "&lt;two&gt;", ">then<"} {
		if !strings.Contains(svg, part) {
			t.Errorf("lacks %s:\n%s", part, svg)
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for text, says := range map[string]string{
		"title: T\nalt: A\n":                 "needs a title, an alt and a box",
		two + "arrow a c":                    `line 6: no box is named "c" yet`,
		two + "box c x 0 plain text":         `line 6: a box is: NAME COLUMN ROW STYLE text; "x" is no column`,
		two + "box c 0 -1 plain text":        `"-1" is no row`,
		two + "box c 0 1 pretty text":        "the styles are plain, user, engine, outside",
		two + "box c 0 1 plain":              "a box is: NAME COLUMN ROW STYLE text",
		two + "arrow a":                      "an arrow is: FROM TO label",
		strings.Replace(two, "box", "bx", 1): `line 3: unknown word "bx"`,
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v does not say %q", text, err, says)
		}
	}
}
