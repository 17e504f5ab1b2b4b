//go:build browser

package dashboard_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/schemas"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func object(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

// browser runs a script of site/dashboard, which ends with an error if what it sees is wrong.
func browser(t *testing.T, script string, args ...string) (said string) {
	t.Helper()
	out, err := inBrowser(t, script, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", script, args, err, out)
	}
	t.Log(strings.TrimSpace(string(out)))
	return string(out)
}

func inBrowser(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "node", append([]string{filepath.Join("..", "..", "site", "dashboard", script+".mjs")}, args...)...)
}

// paths are the pages of the story: the four, and each object that says or draws something of
// its own.
var paths = []string{
	"/?all", "/next", "/next?object=rolloutgroup%2Fingester&namespace=mimir&if=approve%3Derrors", "/next?if=nonsense", "/past", "/no-such-page",
	"/why/deployment.apps/checkout?namespace=shop", "/why/deployment/web?namespace=shop", "/why/deployment/mailer?namespace=shop", "/why/configmap/prices?namespace=shop",
	"/why/rolloutgroup/ingester?namespace=mimir", "/why/instance/zookeeper?namespace=data", "/why/module/shop?namespace=clusters",
	"/past/rolloutgroup/ingester?namespace=mimir", "/past/instance/zookeeper?namespace=data", "/past/module/shop?namespace=clusters",
	"/past/deployment/web?namespace=shop", "/past/rolloutgroup/store?namespace=mimir", "/past/rolloutgroup/store?namespace=mimir&compare=1&compare=2",
	"/act/pause/rolloutgroup/ingester?namespace=mimir", "/act/rollback/module/shop?namespace=clusters",
}

// All of it is one test: the pages share one story, and a browser at a time is enough for
// two cores.
func TestPagesInABrowser(t *testing.T) {
	s := tell(t)
	all := s.open("")
	if pictures := os.Getenv("PICTURES"); pictures != "" {
		browser(t, "pictures", all, pictures)
		return
	}
	browser(t, "look", append([]string{all}, paths...)...)
	t.Run("programs read it", func(t *testing.T) { reads(t, all) })
	t.Run("anna steers by the keyboard", func(t *testing.T) { steers(t, s, s.open("anna")) })
	t.Run("bob looks", func(t *testing.T) { looks(t, s, s.open("bob")) })
	t.Run("a page follows", func(t *testing.T) { follows(t, s, all) })
}

// reads has a program read the pages: they are as the published schemas say.
func reads(t *testing.T, address string) {
	base, token, _ := strings.Cut(address, "/?token=")
	for _, path := range paths {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		name, known := schemaOf[strings.SplitN(strings.SplitN(path, "?", 2)[0]+"/", "/", 3)[1]]
		switch {
		case answer.StatusCode != http.StatusOK:
			name = "error"
		case path == "/past":
			name = "rollouts"
		case strings.Contains(path, "&compare="):
			name = "comparison"
		case !known:
			continue // the page of an act has no schema: programs use the commands
		}
		if err := schemas.Check(filepath.Join("..", "..", "docs", "schemas"), name, text); err != nil {
			t.Errorf("%s: %v\n%s", path, err, text)
		}
	}
}

// schemaOf are the published schemas of pages.
var schemaOf = map[string]string{"": "status", "why": "explain", "next": "forecast", "past": "history"}

// steers has anna pause with scripts and resume without, and approve: it is done as her.
func steers(t *testing.T, s *story, address string) {
	web := func() map[string]string {
		d := &appsv1.Deployment{}
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, d); err != nil {
			t.Fatal(err)
		}
		return d.Annotations
	}
	why := "/why/deployment/web?namespace=shop"
	if said := browser(t, "steer", address, why, "Pause", "incident 42 <b>"); !strings.Contains(said, "Done: deployment/web paused.") {
		t.Error(said)
	}
	if by := web()[vocabulary.PausedBy.Native]; !strings.Contains(by, `"anna"`) || !strings.Contains(by, "incident 42") {
		t.Errorf("paused by %q", by)
	}
	if said := browser(t, "steer", address, why, "Resume", "it is over", "without-scripts"); !strings.Contains(said, "Done: deployment/web resumed.") {
		t.Error(said)
	}
	if vocabulary.Paused.Get(web()) == "true" {
		t.Error("it is still paused")
	}
	said := browser(t, "steer", address, "/why/rolloutgroup/ingester?namespace=mimir", "Approve", "errors are fine")
	for _, want := range []string{"As it is, it waits", "With approve, it ends in", "Done: "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said: %s", want, said)
		}
	}
	gates := &v1alpha1.RolloutGateList{}
	if err := s.client.List(t.Context(), gates, client.InNamespace("mimir")); err != nil || len(gates.Items) == 0 {
		t.Fatalf("%v: %d gates", err, len(gates.Items))
	}
	if text := gates.Items[0].Status.Conditions[0].Message; !strings.Contains(text, "anna") {
		t.Errorf("the gate says %q", text)
	}
}

// looks has bob, who may not change anything, find that out.
func looks(t *testing.T, s *story, address string) {
	said := browser(t, "steer", address, "/why/deployment/web?namespace=shop", "Pause", "")
	if !strings.Contains(said, "Disabled: You may not do it: it takes the permission to patch deployments.apps in namespace shop.") {
		t.Error(said)
	}
}

// The first page is shown before all is read, and fills in without being read again by hand.
func TestThePageBeforeAllIsReadInABrowser(t *testing.T) {
	s := begin(t)
	namespace := testenv.Namespace(t)
	s.apply(fmt.Sprintf(waits, "checkout", namespace))
	gate := make(chan struct{})
	address := s.open("", "--kubeconfig", testenv.Held(t, "/api/v1/secrets", gate))
	browser(t, "look", address, "/past")
	for _, path := range []string{"/", "/past"} {
		if path == "/past" { // of another dashboard: this one has read all
			gate = make(chan struct{})
			address = s.open("", "--kubeconfig", testenv.Held(t, "/api/v1/secrets", gate))
		}
		stops(t, address, path, "Still reading", func() { close(gate) })
	}
}

// follows has a page show a change without being read again by hand.
func follows(t *testing.T, s *story, address string) {
	stops(t, address, "/why/deployment/checkout?namespace=shop", "Secret payments not found", func() {
		s.apply(`{apiVersion: v1, kind: Secret, metadata: {name: payments, namespace: shop}, stringData: {key: x}}`)
	})
}

// stops has a page that is open say something no longer, once that is over.
func stops(t *testing.T, address, path, text string, end func()) {
	t.Helper()
	cmd := inBrowser(t, "follow", address, path, text)
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = os.Stderr
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "open\n" {
		t.Fatalf("%v: %q", err, line)
	}
	end()
	rest, err := io.ReadAll(lines)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Errorf("%v: %s", err, rest)
	}
	t.Log(strings.TrimSpace(string(rest)))
}
