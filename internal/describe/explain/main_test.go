package explain

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) {
	testenv.Parallel(10)                                    // planted situations wait for controllers most of the time
	testenv.Main(m, testenv.Options{Nodes: 3, Alone: true}) // its manager manages all namespaces
}
