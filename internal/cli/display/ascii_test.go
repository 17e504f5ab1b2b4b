package display

import (
	"io"
	"strings"
	"testing"
)

func TestASCII(t *testing.T) {
	t.Parallel()
	for environment, want := range map[string]bool{
		"": false, "TERM=dumb": true, "TERM=xterm": false, "LC_ALL=C": true, "LC_ALL=POSIX": true, "LC_ALL=C.UTF-8 LANG=C": false,
		"LANG=C": true, "LC_CTYPE=C LANG=de_DE.UTF-8": true, "LANG=en_US.UTF-8": false,
	} {
		lookup := func(name string) (string, bool) {
			for pair := range strings.FieldsSeq(environment) {
				if key, value, _ := strings.Cut(pair, "="); key == name {
					return value, true
				}
			}
			return "", false
		}
		if got := IsASCII(lookup); got != want {
			t.Errorf("%s: %t", environment, got)
		}
	}
	b := &strings.Builder{}
	w := ASCII(b)
	if n, err := io.WriteString(w, "├─ ✓ café r1 → r2…"); n != len("├─ ✓ café r1 → r2…") || err != nil || b.String() != "|- + café r1 > r2." {
		t.Errorf("%q, %d, %v", b, n, err)
	}
	if Raw(w) != io.Writer(b) || Raw(b) != io.Writer(b) {
		t.Error("what is for machines is changed")
	}
}
