package hosted

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// slow has looks name a workload of which they do not know more, and wait until they are let go on.
func (w *world) slow() (goOn func()) {
	gate := make(chan struct{})
	w.holds = func(ctx context.Context, part func(describe.Partial)) {
		if part != nil {
			web := describe.Unit{Ref: describe.Ref{Kind: "Deployment", Namespace: "shop", Name: "unread"}, Ring: describe.Config, Phase: describe.PhaseReading}
			part(describe.Partial{Units: []describe.Unit{web}, Reading: describe.Rings()})
		}
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}
	return func() { close(gate) }
}

// answered is an answer to a browser.
type answered struct {
	reply
	text string
}

// asks asks, and hands on the answer once there is one.
func (b *browser) asks(path string, change ...func(*http.Request)) <-chan answered {
	answers := make(chan answered, 1)
	go func() {
		answer, text := b.ask(path, change...)
		answers <- answered{answer, text}
	}()
	return answers
}

var pageVersion = regexp.MustCompile(`data-version="(\d+)"`)

// versionOf is the version of a page that follows.
func versionOf(t *testing.T, page string) string {
	t.Helper()
	found := pageVersion.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page does not follow: %s", page)
	}
	return found[1]
}

// told waits for the next version that a page receives.
func (b *browser) told(version string) (next func() string) {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodGet, b.w.server.URL+"/live?version="+version, http.NoBody)
	if err != nil {
		b.w.t.Fatal(err)
	}
	answer, err := b.Do(r) //nolint:bodyclose // it ends with the test
	if err != nil || answer.StatusCode != http.StatusOK {
		b.w.t.Errorf("%v: %v", answer, err)
		return func() string { return "" }
	}
	lines := bufio.NewScanner(answer.Body)
	return func() string {
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				return id
			}
		}
		return ""
	}
}

// Each person is shown her page before all is read for her. A program, and a page from before, wait
// for the whole; all share one look.
func TestThePageBeforeAllIsRead(t *testing.T) {
	w := login(t)
	goOn := w.slow()
	b := w.browser()
	answer, text := b.ask("/")
	says(t, "the first page", answer, text, http.StatusOK, "Still reading: config, zones, plans, fleet.")
	says(t, "what is known", answer, text, http.StatusOK, "/why/deployment/unread")
	version := versionOf(t, text)
	next := b.told(version)
	program, before := b.asks("/", asProgram), make(chan string, 1)
	go func() { before <- b.told("1")() }()
	testenv.Eventually(t, func(context.Context) error {
		w.pages.following.mu.Lock()
		defer w.pages.following.mu.Unlock()
		if n := w.pages.following.of["oidc:anna"]; n != 2 {
			return fmt.Errorf("%d pages follow", n)
		}
		return nil
	})
	goOn()
	whole := next()
	if whole == "" || whole == version {
		t.Errorf("the page receives version %q after %s", whole, version)
	}
	if got := <-before; got != whole {
		t.Errorf("a page from before receives version %q, and %s has all", got, whole)
	}
	got := <-program
	says(t, "a program", got.reply, got.text, http.StatusOK, "web-of-anna")
	answer, text = b.ask("/")
	says(t, "the first page", answer, text, http.StatusOK, "web-of-anna")
	if strings.Contains(text, "Still reading") || versionOf(t, text) != whole {
		t.Errorf("the page is not whole: %s", text)
	}
	if opened, _ := w.looks(); len(opened) != 1 {
		t.Errorf("looks %v", opened)
	}
}

// Who may list names, but may not see the rollouts, is asked for a namespace all the same, also on
// a page that is open; and that page opens no further looks.
func TestNamesAreNotEnough(t *testing.T) {
	w := login(t)
	goOn := w.slow()
	w.fails(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("not for you")))
	b := w.browser()
	answer, text := b.ask("/")
	says(t, "the first page", answer, text, http.StatusOK, "Still reading")
	version := versionOf(t, text)
	next := b.told(version)
	goOn()
	if got := next(); got == "" || got == version {
		t.Fatalf("the page receives version %q after %s", got, version)
	}
	answer, text = b.ask("/", header("Sec-Fetch-Mode", "cors"))
	says(t, "what the script reads", answer, text, http.StatusForbidden, "Name a namespace that you may see")
	if w.pages.Looks() != 0 {
		t.Errorf("%d looks are open that show nothing", w.pages.Looks())
	}
	answer, text = b.ask("/live?version=" + version)
	says(t, "what follows", answer, text, http.StatusForbidden, "not for you")
	w.fails(nil)
	answer, text = b.ask("/", asProgram)
	says(t, "with the permission", answer, text, http.StatusOK, "web-of-anna")
}
