package nearest_test

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/nearest"
)

func TestMeant(t *testing.T) {
	known := []string{"deployment", "statefulset", "pod", "po"}
	for name, want := range map[string]string{
		"deploymnt": "deployment", "deployment": "deployment", "statefullset": "statefulset",
		"pd": "pod", "opd": "pod", "x": "", "certificate": "", "": "", "stat": "statefulset", "deploy": "deployment", "st": "",
	} {
		if got := nearest.Meant(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got := nearest.Meant("pod", nil); got != "" {
		t.Errorf("got %q of nothing", got)
	}
}
