package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// What a stop interrupts is no error. Every other error is one, also during a stop.
func TestAStopIsNoError(t *testing.T) {
	said := &strings.Builder{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := quietStop(ctx, logr.FromSlogHandler(slog.NewTextHandler(said, nil))).WithName("plans").WithValues("name", "web")
	interrupted := fmt.Errorf("get OperatorVersion web: %w", context.Canceled)
	for _, c := range []struct {
		about   string
		err     error
		stopped bool
		want    string
	}{
		{"a call that is canceled while the manager works", interrupted, false, "level=ERROR"},
		{"an error while the manager works", errors.New("broken"), false, "level=ERROR"},
		{"a call that the stop interrupts", interrupted, true, "level=INFO msg=\"interrupted by the stop\""},
		{"an error during the stop", errors.New("broken"), true, "level=ERROR"},
		{"the Lease is released", errors.New(leaseReleased), true, ""},
	} {
		if c.stopped {
			stop()
		}
		said.Reset()
		log.Error(c.err, "Reconciler error")
		if got := said.String(); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
}
