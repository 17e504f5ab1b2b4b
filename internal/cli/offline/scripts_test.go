package offline_test

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/registry"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"spillway": spillway, "kubectl-kudo": spillway})
}

func spillway() {
	os.Exit(cli.Run(context.Background(), command.Environment{Args: os.Args, Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv, Now: time.Now}))
}

// TestScripts runs what a person types, without a cluster. The folder served of a script is
// at $HTTP, and $OCI is a registry.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			files, images := httptest.NewServer(http.FileServer(http.Dir(env.WorkDir+"/served"))), httptest.NewServer(&registry.Registry{})
			env.Defer(files.Close)
			env.Defer(images.Close)
			env.Setenv("HTTP", files.URL)
			env.Setenv("OCI", "oci://"+strings.TrimPrefix(images.URL, "http://"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", "/dev/null")
			return nil
		},
	})
}
