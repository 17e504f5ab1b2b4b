package cli

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spillway-dev/spillway/internal/cli/display"
)

func TestAnErrorIsOneLineButOnATerminal(t *testing.T) {
	err := errors.New("module/shop is suspended already, by admin; let it go on with: spillway fleet resume shop -n clusters\nand so on")
	if got := errorText(display.Style{}, err); got != "error: "+err.Error()+"\n" {
		t.Errorf("got %q", got)
	}
	for line := range strings.Lines(errorText(display.Style{Width: 80}, err)) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("%q does not fit", line)
		}
	}
}
