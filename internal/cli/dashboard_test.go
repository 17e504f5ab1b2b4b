package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/lab/schemas"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/forms"
	"github.com/spillway-dev/spillway/internal/vocabulary"
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
	if err := schemas.Check(filepath.Join("..", "..", "docs", "schemas"), schemaOf(path), text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return json.Unmarshal(text, into)
}

// schemaOf is the published schema of a page.
func schemaOf(path string) string {
	page, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case page == "why":
		return "explain"
	case page == "next":
		return "forecast"
	case path == "/past":
		return "rollouts"
	case page == "past":
		return "history"
	default:
		return "status"
	}
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
			if !strings.HasPrefix(found.NoManager, "none ") {
				return fmt.Errorf("that no manager is at work is said as %q", found.NoManager)
			}
			return nil
		})
	}
	says("Secret db", true)
	why := explain.Chain{}
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

// TestDashboardBeforeAllIsRead: while the API server lists, the first page names the workloads and
// what is still being read; a program waits for their states, and the page has them then.
func TestDashboardBeforeAllIsRead(t *testing.T) {
	namespace := testenv.Namespace(t)
	user, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testenv.ApplyManifest(t, user, strings.Replace(waitsForSecret, "metadata: {", "metadata: {namespace: "+namespace+", ", 1))
	gate := make(chan struct{})
	p := openDashboard(t, "-n", namespace, "--namespaces", namespace, "--kubeconfig", testenv.Held(t, "/api/v1/namespaces/"+namespace+"/secrets", gate))
	shows := func(wants []string, not ...string) {
		t.Helper()
		testenv.Eventually(t, func(context.Context) error {
			text, err := p.send(http.MethodGet, "/", nil, http.StatusOK)
			for _, want := range wants {
				if err == nil && !strings.Contains(text, want) {
					err = fmt.Errorf("it does not say %q: %s", want, text)
				}
			}
			for _, other := range not {
				if err == nil && strings.Contains(text, other) {
					err = fmt.Errorf("it says %q: %s", other, text)
				}
			}
			return err
		})
	}
	shows([]string{"Still reading: config", "What is being read", "/why/deployment/web?namespace=" + namespace}, "Nothing moves", "What waits")
	found, answered := describe.Description{}, make(chan error, 1)
	go func() { answered <- p.get("/", &found) }()
	close(gate)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if units := describe.Rolled(found.Units); len(units) != 1 || !strings.Contains(units[0].Sentence, "Secret db") {
		t.Errorf("a program gets %+v", found)
	}
	shows([]string{"What waits", "Secret db"}, "Still reading", "being read")
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

// form is a page with a form, as a browser gets it: what it would send, and the page.
func (p *pages) form(path, reason string) (url.Values, string, error) {
	text, err := p.send(http.MethodGet, path, nil, http.StatusOK)
	if err != nil {
		return nil, "", err
	}
	values := forms.Of(p.t, text)
	values.Set("reason", reason)
	return values, text, nil
}

// send sends what a browser sends, and returns the page if the status is the one that is
// wanted.
func (p *pages) send(method, path string, form url.Values, want int) (string, error) {
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.address+path, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Origin", p.address)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != want {
		err = fmt.Errorf("%s: status %d, not %d: %s", path, answer.StatusCode, want, text)
	}
	return string(text), err
}

// A person steers on the pages as with the commands: as herself, for a reason, and only what
// is still as she saw it.
func TestDashboardSteers(t *testing.T) {
	namespace := testenv.Namespace(t)
	user, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testenv.ApplyManifest(t, user, strings.Replace(waitsForSecret, "metadata: {", "metadata: {namespace: "+namespace+", ", 1))
	p := openDashboard(t, "-n", namespace, "--namespaces", namespace)
	web := func() *appsv1.Deployment {
		d := &appsv1.Deployment{}
		if err := user.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	pause, resume := "/act/pause/deployment/web?namespace="+namespace, "/act/resume/deployment/web?namespace="+namespace
	if _, text, err := p.form(resume, ""); err != nil || !strings.Contains(text, "is not paused") {
		t.Errorf("%v: %s", err, text)
	}
	seen, text, err := p.form(pause, "incident 42")
	if err != nil || !strings.Contains(text, "If you go on: deployment/web paused.") {
		t.Fatalf("%v: %s", err, text)
	}
	if err := user.Patch(t.Context(), web(), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"changed": "meanwhile"}}}`))); err != nil {
		t.Fatal(err)
	}
	if _, err := p.send(http.MethodPost, pause, seen, http.StatusConflict); err != nil {
		t.Error(err)
	}
	if by := web().Annotations[vocabulary.PausedBy.Native]; by != "" {
		t.Fatalf("it is paused, although it has changed: %s", by)
	}
	testenv.Eventually(t, func(context.Context) error { // controllers write there as well
		seen, _, err := p.form(pause, "incident 42")
		if err != nil {
			return err
		}
		_, err = p.send(http.MethodPost, pause, seen, http.StatusSeeOther)
		return err
	})
	if by := web().Annotations[vocabulary.PausedBy.Native]; !strings.Contains(by, "incident 42") {
		t.Errorf("who has paused it, and why, is not recorded: %q", by)
	}
	testenv.Eventually(t, func(context.Context) error {
		seen, _, err := p.form(resume, "it is over")
		if err != nil {
			return err
		}
		_, err = p.send(http.MethodPost, resume, seen, http.StatusSeeOther)
		return err
	})
	if vocabulary.Paused.Get(web().Annotations) == "true" {
		t.Error("it is still paused")
	}
}

// Who may only read sees which permission lacks; and a form that is sent all the same is
// refused by the API server.
func TestDashboardOfAReader(t *testing.T) {
	namespace := testenv.Namespace(t)
	user, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testenv.ApplyManifest(t, user, strings.Replace(waitsForSecret, "metadata: {", "metadata: {namespace: "+namespace+", ", 1))
	reader := "reader-of-" + namespace
	testenv.Grant(t, user, namespace, reader, []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}})
	p := openDashboard(t, "-n", namespace, "--namespaces", namespace, "--as", reader)
	pause := "/act/pause/deployment/web?namespace=" + namespace
	testenv.Eventually(t, func(context.Context) error { // until the API server knows the role
		_, text, err := p.form(pause, "incident 42")
		if err == nil && !strings.Contains(text, "it takes the permission to patch deployments.apps in namespace "+namespace) {
			err = errors.New(text)
		}
		return err
	})
	testenv.Eventually(t, func(context.Context) error { // controllers write there as well
		seen, _, err := p.form(pause, "incident 42")
		if err != nil {
			return err
		}
		text, err := p.send(http.MethodPost, pause, seen, http.StatusForbidden)
		if err == nil && !strings.Contains(text, "forbidden") {
			err = errors.New(text)
		}
		return err
	})
}
