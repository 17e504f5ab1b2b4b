package snapshot

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// TestMain has a control plane of its own: a list of all namespaces is counted by its pages.
func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Alone: true}) }
