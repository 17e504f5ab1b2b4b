package reasons_test

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/reasons"
)

func TestOf(t *testing.T) {
	t.Parallel()
	cause, action, ok := reasons.Of(reasons.Complete)
	if !ok || cause != "everything is at its revision, and healthy" || action != "nothing, this is the desired state" {
		t.Errorf("Of(Complete) = %q, %q, %v", cause, action, ok)
	}
	if link := reasons.Link("ConfigMissing"); link != "docs/reasons.md#configmissing" {
		t.Error(link)
	}
}

func TestOfNoReason(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"", "configmissing", "Whatever"} {
		if cause, action, ok := reasons.Of(word); ok || cause != "" || action != "" || reasons.Link(word) != "" {
			t.Errorf("%q is taken for a reason", word)
		}
	}
}
