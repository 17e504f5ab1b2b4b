package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// drawing is what a description says.
type drawing struct {
	title, alt string
	boxes      []box
	arrows     []arrow
}

// box stands in a column and a row.
type box struct {
	name        string
	column, row int
	style       string
	lines       []string
}

// arrow leads from one box to another.
type arrow struct {
	from, to box
	label    string
}

var styles = []string{"plain", "user", "engine", "outside"}

// parse reads a description; an error names its line.
func parse(text string) (*drawing, error) {
	d := &drawing{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := d.read(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if d.title == "" || d.alt == "" || len(d.boxes) == 0 {
		return nil, errors.New("a drawing needs a title, an alt and a box")
	}
	return d, nil
}

func (d *drawing) read(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "title:":
		d.title = rest
	case "alt:":
		d.alt = rest
	case "box":
		return d.readBox(rest)
	case "arrow":
		return d.readArrow(rest)
	default:
		return fmt.Errorf("unknown word %q: must be title:, alt:, box or arrow", word)
	}
	return nil
}

func (d *drawing) readBox(rest string) error {
	const form = "a box is: NAME COLUMN ROW STYLE text"
	words := strings.SplitN(rest, " ", 5)
	if len(words) < 5 {
		return errors.New(form)
	}
	column, err := strconv.Atoi(words[1])
	if err != nil || column < 0 {
		return fmt.Errorf("%s; %q is no column", form, words[1])
	}
	row, err := strconv.Atoi(words[2])
	if err != nil || row < 0 {
		return fmt.Errorf("%s; %q is no row", form, words[2])
	}
	if !slices.Contains(styles, words[3]) {
		return fmt.Errorf("%s; the styles are %s", form, strings.Join(styles, ", "))
	}
	b := box{name: words[0], column: column, row: row, style: words[3]}
	for text := range strings.SplitSeq(words[4], "/") {
		b.lines = append(b.lines, strings.TrimSpace(text))
	}
	d.boxes = append(d.boxes, b)
	return nil
}

func (d *drawing) readArrow(rest string) error {
	words := strings.SplitN(rest, " ", 3)
	if len(words) < 2 {
		return errors.New("an arrow is: FROM TO label")
	}
	a := arrow{}
	for i, to := range []*box{&a.from, &a.to} {
		at := slices.IndexFunc(d.boxes, func(b box) bool { return b.name == words[i] })
		if at < 0 {
			return fmt.Errorf("no box is named %q yet", words[i])
		}
		*to = d.boxes[at]
	}
	if len(words) == 3 {
		a.label = words[2]
	}
	d.arrows = append(d.arrows, a)
	return nil
}
