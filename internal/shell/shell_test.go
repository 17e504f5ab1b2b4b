package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/shell"
)

// A real shell takes each word as it is, and runs nothing in it.
func TestAShellTakesWordsAsTheyAre(t *testing.T) {
	words := []string{
		"plain", "--flag=plain", "a b", "", "$(touch owned);x", "`id`", "it's", "'", "''", "\"$HOME\"", "a\nb", "--reason=it's $HOME", "=x y", "*", "~", "!x", "a;b", "é ü", "-p",
		`{"data":{"k":"VALUE"}}`, "jsonpath={.metadata.finalizers}",
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+shell.Join(words...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i, word := range words {
		if i >= len(got) || got[i] != word {
			t.Fatalf("the shell takes %q as %q", word, got[min(i, len(got)-1)])
		}
	}
	if got := shell.Join("-o", "jsonpath={.metadata.finalizers}"); got != "-o jsonpath='{.metadata.finalizers}'" {
		t.Error(got)
	}
}
