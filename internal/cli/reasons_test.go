package cli

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/reasons"
)

// TestActionsNameCommands: a fix that names a command names one that there is, with
// flags that it has.
func TestActionsNameCommands(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`spillway((?: [a-z]+)+)((?: --[a-z-]+(?: [a-z]+)?)*)`)
	root, found := newRoot(command.Environment{Args: []string{"spillway"}, Now: time.Now}), 0
	for _, word := range reasons.All() {
		_, action, _ := reasons.Of(word)
		for _, match := range named.FindAllStringSubmatch(action, -1) {
			found++
			cmd, rest, err := root.Find(strings.Fields(match[1]))
			if err != nil || cmd == root || cmd.HasSubCommands() {
				t.Errorf("the fix of %s names %q, which is no command: %v %v", word, match[0], rest, err)
				continue
			}
			if err := cmd.ParseFlags(strings.Fields(match[2])); err != nil {
				t.Errorf("the fix of %s names %q: %v", word, match[0], err)
			}
		}
	}
	if found == 0 {
		t.Error("no fix names a command")
	}
}
