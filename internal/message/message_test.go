package message_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/internal/message"
)

func TestAValueIsQuotedInPart(t *testing.T) {
	for value, want := range map[string]string{
		"":                             `""`,
		"yes":                          `"yes"`,
		"a\nb":                         `"a\nb"`,
		strings.Repeat("a", 120):       `"` + strings.Repeat("a", 120) + `"`,
		strings.Repeat("a", 121):       `"` + strings.Repeat("a", 120) + `..." (121 bytes)`,
		strings.Repeat("a", 119) + "€": `"` + strings.Repeat("a", 119) + `..." (122 bytes)`,
	} {
		if got := message.Quote(value); got != want {
			t.Errorf("%.20s of %d bytes: %s", value, len(value), got)
		}
	}
}

func TestAListNamesItsFirstItems(t *testing.T) {
	items := strings.Split("a,b,c,d,e,f,g,h,i,j,k,l", ",")
	for n, want := range map[int]string{0: "", 1: "A", 10: "A; B; C; D; E; F; G; H; I; J", 12: "A; B; C; D; E; F; G; H; I; J; and 2 more"} {
		if got := message.Join(items[:n], "; ", strings.ToUpper); got != want {
			t.Errorf("%d items: %s", n, got)
		}
	}
}

// Whatever is said has an end, and is text if it was.
func TestWhatIsSaidHasAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, length := rapid.String().Draw(t, "text"), rapid.IntRange(3, 30).Draw(t, "length")
		cut := message.Cut(text, length)
		if len(cut) > length || !utf8.ValidString(cut) || len(text) <= length && cut != text {
			t.Errorf("of %q at most %d bytes are %q", text, length, cut)
		}
		value := rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "value")
		if q := message.Quote(string(value)); len(q) > 4*message.ValueLength+30 {
			t.Errorf("a value of %d bytes is quoted in %d", len(value), len(q))
		}
	})
}
