// Package nearest finds the known name that a person may have meant by another.
package nearest

// Of returns the known name that is most like another, and how many letters differ. It
// returns the first of several, and "" where none is known.
func Of(name string, known []string) (near string, distance int) {
	distance = len(name) + 1
	for _, k := range known {
		if d := difference(name, k); d < distance {
			near, distance = k, d
		}
	}
	return near, distance
}

// Meant returns the known name that a person has probably mistyped, "" if there is none:
// at most a third of the letters differ.
func Meant(name string, known []string) string {
	near, distance := Of(name, known)
	if distance > max(1, len(name)/3) {
		return ""
	}
	return near
}

// difference is how many letters must be inserted, removed or replaced to make
// one text the other.
func difference(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, replaced)
		}
	}
	return row[len(b)]
}
