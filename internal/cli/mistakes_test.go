package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manifests"
)

var update = flag.Bool("update", false, "write what the commands say to mistakes as what they are to say")

// namespacesVariable names the namespaces that a command is about.
const namespacesVariable = "SPILLWAY_NAMESPACES"

// patience is for what ought to end immediately and does not end at all.
const patience = 2 * time.Minute

// jargon is what no message has: it is about this program, and not about the mistake.
var jargon = []string{"strconv.", "json: ", "unmarshal", "runtime.go", "goroutine", "SetLogger", "0x", "%!", "<nil>", "v1alpha1.", "pflag", "cobra", "no such file or directory\n"}

// TestMistakes types every mistake of the record, and compares what the program says.
func TestMistakes(t *testing.T) {
	record := filepath.Join("testdata", "mistakes", "record.txt")
	all, err := readMistakes(record)
	if err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(record)
	if err != nil {
		t.Fatal(err)
	}
	namespace := makeMistakenWorld(t)
	known := strings.NewReplacer("$NS", namespace, "$SERVER", testenv.Shared().Config().Host, "$PLAIN", strings.Replace(testenv.Shared().Config().Host, "https:", "http:", 1))
	seen := strings.NewReplacer(namespace, "$NS", testenv.Shared().Config().Host, "$SERVER")
	for i := range all {
		m := &all[i]
		t.Run(m.Command, func(t *testing.T) {
			says, code := typed(t, known, m)
			says = seen.Replace(says)
			for _, word := range jargon {
				if strings.Contains(says+"\n", word) {
					t.Errorf("%q is in the message: %s", word, says)
				}
			}
			if *update {
				m.Says, m.Code = says, code
			}
			if says != m.Says || code != m.Code {
				t.Errorf("it says, with exit code %d\n%s\nand is to say, with exit code %d\n%s", code, says, m.Code, m.Says)
			}
		})
	}
	if *update {
		if err := os.WriteFile(absolute, []byte(formatMistakes(all)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// typed runs what a person types, and returns what is on stderr and the exit code.
func typed(t *testing.T, known *strings.Replacer, m *mistake) (says string, code int) {
	t.Helper()
	for _, variable := range m.Environment {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, known.Replace(value))
	}
	if strings.HasPrefix(m.Command, "spillway check") { // it would be about what is not installed yet
		t.Setenv(namespacesVariable, "")
		if err := os.Unsetenv(namespacesVariable); err != nil {
			t.Fatal(err)
		}
	}
	out, errs := &testenv.Buffer{}, &testenv.Buffer{}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	code = cli.Run(ctx, command.Environment{
		Args: words(known.Replace(m.Command)), Out: out, Err: errs, Now: time.Now, Lookup: os.LookupEnv,
	})
	return spoken(out.String() + errs.String()), code
}

// spoken is what a person reads of an output: without what the manager logs.
func spoken(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "time=") || line == "" })
	return strings.Join(lines, "\n")
}

// words are those of a line, as a shell splits it; quotes are single.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

// alone removes the workloads that earlier tests have left, some with finalizers of programs
// that do not run here, so that what is said of the whole cluster is said of this test. The
// managers that tests have installed stay.
func alone(t *testing.T, c client.Client) {
	t.Helper()
	testenv.Eventually(t, func(ctx context.Context) error {
		list := &appsv1.DeploymentList{}
		if err := c.List(ctx, list); err != nil {
			return err
		}
		left := slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return d.Name == "spillway" })
		var errs []error
		for i := range left {
			d := &left[i]
			errs = append(errs, fmt.Errorf("deployment %s is left in namespace %s", d.Name, d.Namespace))
			if len(d.Finalizers) > 0 {
				d.Finalizers = nil
				errs = append(errs, c.Update(ctx, d))
				continue
			}
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, d)))
		}
		return errors.Join(errs...)
	})
}

// installKinds installs the kinds of the rings.
func installKinds(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := manifests.CustomKinds()
	if err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, c, kinds)
	return c
}

// makeMistakenWorld makes what the record is about: the kinds of the rings, a namespace with
// objects, and a folder with files, which becomes the working directory.
func makeMistakenWorld(t *testing.T) string {
	t.Helper()
	c := installKinds(t)
	alone(t, c)
	namespace := testenv.Namespace(t)
	raw, err := os.ReadFile(filepath.Join("testdata", "mistakes", "cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(raw), "---\n") {
		testenv.ApplyManifest(t, c, strings.ReplaceAll(doc, "$NS", namespace))
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "mistakes"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "binary"), fstest.MapFS{
		"logo.yaml": {Data: []byte("\x89PNG\x00")}, "web.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")},
	}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", testenv.Shared().Kubeconfig())
	t.Setenv("HOME", dir)
	t.Setenv(namespacesVariable, namespace) // other tests install managers for their namespaces
	t.Chdir(dir)
	return namespace
}
