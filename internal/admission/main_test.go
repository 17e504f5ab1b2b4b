package admission_test

import (
	"flag"
	"os"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// The fuzz test runs in many processes, none of which needs a control plane.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run())
	}
	testenv.Main(m, testenv.Options{})
}
