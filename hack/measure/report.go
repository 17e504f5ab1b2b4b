package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// long is how many lines a function may have.
const long = 60

// rings are the folders of which pairs are compared.
var rings = []string{"config", "zones", "plans", "fleet", "simulate"}

// report is what was measured, as Markdown: a row for each package, one for all, and the
// functions that two rings have.
func report(rooms []room) string {
	rooms = slices.DeleteFunc(rooms, func(r room) bool { return r.code+r.tests == 0 })
	slices.SortFunc(rooms, func(a, b room) int { return cmp.Compare(a.path, b.path) })
	var b strings.Builder
	b.WriteString("| package | files | code | tests | tests/code | functions | median | p90 | over 60 | documented | arrows | back up |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range append(rooms, total(rooms)) {
		b.WriteString(r.row())
	}
	fmt.Fprintf(&b, "\nFolders with more than 15 files: %s.\n\n", crowded(rooms))
	b.WriteString("| rings | functions that both have | lines in the first | in the second |\n|---|---|---|---|\n")
	for i, one := range rings {
		for _, other := range rings[i+1:] {
			n, a, c := twice(functionsOf(rooms, one), functionsOf(rooms, other))
			fmt.Fprintf(&b, "| %s, %s | %d | %d | %d |\n", one, other, n, a, c)
		}
	}
	return b.String()
}

func (r *room) row() string {
	var lengths []int
	over := 0
	for _, f := range r.functions {
		lengths = append(lengths, f.lines)
		if f.lines > long {
			over++
		}
	}
	slices.Sort(lengths)
	return fmt.Sprintf("| %s | %d | %d | %d | %.2f | %d | %d | %d | %s | %s | %d | %d |\n", r.path, r.files, r.code, r.tests, float64(r.tests)/float64(max(r.code, 1)),
		len(lengths), quantile(lengths, 50), quantile(lengths, 90), share(over, len(lengths)), share(r.documented, r.exported), r.arrows, r.back)
}

func quantile(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

func share(part, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(of))
}

// total adds all packages up.
func total(rooms []room) room {
	all := room{path: "**all**", functions: map[string]function{}}
	for _, r := range rooms {
		all.files, all.code, all.tests = all.files+r.files, all.code+r.code, all.tests+r.tests
		all.exported, all.documented = all.exported+r.exported, all.documented+r.documented
		all.arrows, all.back = all.arrows+r.arrows, all.back+r.back
		for name, f := range r.functions {
			all.functions[r.path+" "+name] = f
		}
	}
	return all
}

func crowded(rooms []room) string {
	var names []string
	for _, r := range rooms {
		if r.files > 15 {
			names = append(names, fmt.Sprintf("%s (%d)", r.path, r.files))
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// functionsOf are the functions of a ring. Those that several of its packages have
// are counted once.
func functionsOf(rooms []room, ring string) map[string]function {
	all := map[string]function{}
	for _, r := range rooms {
		if r.path == "internal/"+ring || strings.HasPrefix(r.path, "internal/"+ring+"/") {
			maps.Copy(all, r.functions)
		}
	}
	return all
}

// twice are how many functions two rings have, and their lines in each.
func twice(a, b map[string]function) (n, linesA, linesB int) {
	for name, f := range a {
		if g, ok := b[name]; ok {
			n, linesA, linesB = n+1, linesA+f.lines, linesB+g.lines
		}
	}
	return n, linesA, linesB
}
