package display

import (
	"os"
	"strings"
	"testing"
)

func noVariables(string) (string, bool) { return "", false }

func TestColorIsForTerminalsAlone(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	if s := StyleOf(file, noVariables); s.Color || s.Width != 0 {
		t.Errorf("in a file, the style is %+v", s)
	}
	if s := StyleOf(&strings.Builder{}, noVariables); s.Color || s.Width != 0 {
		t.Errorf("in a pipe, the style is %+v", s)
	}
	for name, test := range map[string]struct {
		variables map[string]string
		want      bool
	}{
		"of course":                        {map[string]string{"TERM": "xterm"}, true},
		"NO_COLOR is set":                  {map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		"an empty NO_COLOR does not count": {map[string]string{"NO_COLOR": ""}, true},
		"a terminal without colors":        {map[string]string{"TERM": "dumb"}, false},
	} {
		lookup := func(name string) (string, bool) { value, ok := test.variables[name]; return value, ok }
		if got := styleFor(80, lookup).Color; got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestStyle(t *testing.T) {
	plainly, colored := Style{Width: 40}, Style{Color: true}
	if got := plainly.Word("Failed"); got != "Failed" {
		t.Errorf("without color, a word is %q", got)
	}
	for word, color := range map[string]string{"Failed": Red, "Complete": Green, "Progressing": cyan, "Paused": Yellow, "GatePending": Yellow} {
		if got := colored.Word(word); got != "\x1b["+color+"m"+word+"\x1b[0m" {
			t.Errorf("in color, a word is %q", got)
		}
	}
	if got, want := plainly.Fold("one two three four five six seven", 10), "one two three four five six\n          seven"; got != want {
		t.Errorf("folded it is %q", got)
	}
	if got := plainly.Fold("one two three four five six seven eight nine", 35); strings.Contains(got, "\n") {
		t.Errorf("a narrow column is folded: %q", got)
	}
	if got := Plain("a\x1b[31m\nb\tc\a\u009b"); got != "a[31m b c" {
		t.Errorf("of what others have written, %q is left", got)
	}
}
