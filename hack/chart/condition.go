package main

import (
	"fmt"
	"slices"
	"strings"
)

// cube is a set of assignments: for each option the values that are in it, as bits.
type cube []uint8

func (c cube) contains(a assignment) bool {
	for i, value := range a {
		if c[i]&(1<<value) == 0 {
			return false
		}
	}
	return true
}

// condition is when something is in a template: in some of the assignments that get there.
// It is empty if that is always.
func condition(all []option, in, out []assignment) string {
	if len(out) == 0 {
		return ""
	}
	var cubes []cube
	for len(in) > 0 {
		c := widest(all, in[0], out)
		cubes = append(cubes, c)
		var rest []assignment
		for _, a := range in {
			if !c.contains(a) {
				rest = append(rest, a)
			}
		}
		in = rest
	}
	terms := make([]string, 0, len(cubes))
	for _, c := range cubes {
		terms = append(terms, c.expression(all))
	}
	if len(terms) == 1 {
		return terms[0]
	}
	return "(or " + strings.Join(terms, " ") + ")"
}

// widest grows a cube around an assignment, as long as nothing is in it that must not be.
// What matters less is widened first, so that conditions are about the rings rather than
// about what follows from them.
func widest(all []option, from assignment, out []assignment) cube {
	c := make(cube, len(from))
	for i, value := range from {
		c[i] = 1 << value
	}
	isClear := func() bool {
		return !slices.ContainsFunc(out, c.contains)
	}
	widen := func(i int, to uint8) bool {
		before := c[i]
		c[i] |= to
		if isClear() {
			return true
		}
		c[i] = before
		return false
	}
	for i, a := range slices.Backward(all) {
		full := uint8(1)<<a.size() - 1
		if widen(i, full) {
			continue
		}
		for value := range a.size() {
			widen(i, 1<<value)
		}
	}
	return c
}

// expression is the cube in the language of templates.
func (c cube) expression(all []option) string {
	var terms []string
	for i, o := range all {
		full := uint8(1)<<o.size() - 1
		if c[i] == full {
			continue
		}
		terms = append(terms, o.expression(c[i]))
	}
	if len(terms) == 1 {
		return terms[0]
	}
	return "(and " + strings.Join(terms, " ") + ")"
}

func (o option) expression(values uint8) string {
	if o.cases == nil {
		return map[uint8]string{1: "(not $" + o.name + ")", 2: "$" + o.name}[values] //nolint:mnd // the bits of false and true
	}
	var in, out []string
	for value, name := range o.cases {
		if values&(1<<value) != 0 {
			in = append(in, fmt.Sprintf("%q", name))
		} else {
			out = append(out, fmt.Sprintf("%q", name))
		}
	}
	switch {
	case len(in) == 1:
		return "(eq $" + o.name + " " + in[0] + ")"
	case len(out) == 1:
		return "(ne $" + o.name + " " + out[0] + ")"
	default:
		return "(has $" + o.name + " (list " + strings.Join(in, " ") + "))"
	}
}
