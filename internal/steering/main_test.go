package steering_test

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// TestMain lets more tests run at a time than there are processors: they wait for the API server.
func TestMain(m *testing.M) {
	testenv.Parallel(6)
	testenv.Main(m, testenv.Options{})
}
