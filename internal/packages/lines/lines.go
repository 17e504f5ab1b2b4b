// Package lines finds what belongs together in the lines of YAML in block style, so that it
// can be changed without writing the rest again.
package lines

import "strings"

// Indent is by how many columns a line is indented; none if it is empty or a comment.
func Indent(line string) (n int, ok bool) {
	rest := strings.TrimSpace(line)
	if rest == "" || strings.HasPrefix(rest, "#") {
		return 0, false
	}
	return len(line) - len(strings.TrimLeft(line, " ")), true
}

// End is the line after the last one of what begins in a line at a column, from 0. Empty
// lines and comments at the end do not belong to it. A list may be as far to the left as
// its key.
func End(all []string, line, column int, isList bool) int {
	last := line + 1
	for i := line + 1; i < len(all); i++ {
		n, ok := Indent(all[i])
		if !ok {
			continue
		}
		inList := isList && n == column && strings.HasPrefix(all[i][n:], "-")
		if strings.HasPrefix(all[i], "---") || (n <= column && !inList) {
			break
		}
		last = i + 1
	}
	return last
}
