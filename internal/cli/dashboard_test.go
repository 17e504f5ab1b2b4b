package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// pages are those of the command dashboard, for who knows the address that it prints.
type pages struct {
	t              *testing.T
	address, token string
}

var printed = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/\?token=(\w+)`)

// openDashboard runs the command until the end of the test.
func openDashboard(t *testing.T, args ...string) *pages {
	t.Helper()
	out := &testenv.Buffer{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, command.Environment{
			Args: append([]string{"spillway", "dashboard", "--port", "0", "--kubeconfig", testenv.Shared().Kubeconfig()}, args...), Out: out, Err: out, Lookup: os.LookupEnv, Now: time.Now,
		})
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	p := &pages{t: t}
	testenv.Eventually(t, func(context.Context) error {
		found := printed.FindStringSubmatch(out.String())
		if found == nil {
			return fmt.Errorf("no address in %q", out)
		}
		p.address, p.token = found[1], found[2]
		return nil
	})
	return p
}

// get is a page as a program gets it.
func (p *pages) get(path string, into any) error {
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.address+path, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Accept", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d: %s", path, answer.StatusCode, text)
	}
	return json.Unmarshal(text, into)
}

const waitsForSecret = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {spillway.dev/update-on-config-change: "true"}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x, envFrom: [{secretRef: {name: db}}]}]}
`

// The pages say what the commands say, of the real API server, and follow it.
func TestDashboard(t *testing.T) {
	namespace := testenv.Namespace(t)
	c, err := testenv.Shared().Clientset()
	if err != nil {
		t.Fatal(err)
	}
	user, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testenv.ApplyManifest(t, user, strings.Replace(waitsForSecret, "metadata: {", "metadata: {namespace: "+namespace+", ", 1))
	p := openDashboard(t, "-n", namespace, "--namespaces", namespace) // another test may have installed a manager of others
	says := func(want string, is bool) {
		t.Helper()
		testenv.Eventually(t, func(context.Context) error {
			found := describe.Description{}
			if err := p.get("/", &found); err != nil {
				return err
			}
			units := describe.Rolled(found.Units)
			if len(units) != 1 || units[0].Name != "web" || strings.Contains(units[0].Sentence, want) != is {
				return fmt.Errorf("whether %q is said is not %t of %+v", want, is, found)
			}
			return nil
		})
	}
	says("Secret db", true)
	why := chain.Chain{}
	if err := p.get("/why/deployment/web", &why); err != nil || !strings.Contains(why.Root().Next, "create secret") {
		t.Errorf("%v: %+v", err, why)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}, StringData: map[string]string{"p": "1"}}
	if _, err := c.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	says("Secret db", false)
	for _, path := range []string{"/next", "/past", "/past/deployment/web"} {
		var value any
		if err := p.get(path, &value); err != nil {
			t.Error(err)
		}
	}
	if err := p.get("/past/deployment/none", new(any)); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Error(err)
	}
}

// What cannot be served is said before anything is.
func TestDashboardMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"--port 70000":      "error: --port: 70000 is no port; use one from 1 to 65535, or 0 for any that is free\n",
		"-A -n shop":        "error: " + command.ErrBothNamespaces.Error() + "\n",
		"-n no-such-place":  "error: namespace no-such-place not found",
		"shop":              "error: ",
		"--port=0 --nodice": "error: unknown flag: --nodice",
	} {
		out := &testenv.Buffer{}
		code := cli.Run(t.Context(), command.Environment{
			Args: append([]string{"spillway", "dashboard", "--kubeconfig", testenv.Shared().Kubeconfig()}, strings.Fields(args)...), Out: out, Err: out, Lookup: os.LookupEnv, Now: time.Now,
		})
		if code != 1 || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: exit code %d, %s", args, code, out)
		}
	}
}
