package catalogue_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/reasons/catalogue"
)

const root = "../../.."

func read(t *testing.T, folder string, patterns ...string) *catalogue.Catalogue {
	t.Helper()
	c, err := catalogue.Read(folder, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNoOtherReason is the rule for the whole module: what is shown as a reason is a
// constant with its cause and its fix; and that the page and the table have them all.
func TestNoOtherReason(t *testing.T) {
	t.Parallel()
	c := read(t, root, "./...")
	for _, problem := range c.Problems {
		t.Error(problem)
	}
	table, err := c.Table()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{catalogue.PageFile: c.Page(), catalogue.TableFile: table} {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not up to date (%v); run make generate", name, err)
		}
	}
}

// TestEntries: the catalogue has reasons of every ring, and the table knows of each what
// the catalogue does.
func TestEntries(t *testing.T) {
	t.Parallel()
	c := read(t, root, "./...")
	anchors, rings := map[string]string{}, map[string]bool{}
	for i := range c.Entries {
		e := &c.Entries[i]
		rings[e.Ring] = true
		if other, taken := anchors[e.Anchor()]; taken {
			t.Errorf("%s and %s have one place on the page", e.Word, other)
		}
		anchors[e.Anchor()] = e.Word
		cause, action, ok := reasons.Of(e.Word)
		if !ok || cause != e.Cause || action != e.Action {
			t.Errorf("the table says of %s %q and %q", e.Word, cause, action)
		}
		if link := reasons.Link(e.Word); link != "docs/reasons.md#"+e.Anchor() {
			t.Errorf("the link of %s is %s", e.Word, link)
		}
	}
	for _, ring := range catalogue.Rings() {
		if !rings[ring] {
			t.Errorf("no reason of %s", ring)
		}
	}
	if len(rings) != len(catalogue.Rings()) || len(reasons.All()) != len(c.Entries) {
		t.Errorf("%d reasons of %d rings, %d in the table", len(c.Entries), len(rings), len(reasons.All()))
	}
}

// TestUses: where a reason is shown follows from where its constant goes.
func TestUses(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	c := read(t, ".", "./testdata/right", "../../../rollout", "..")
	for _, problem := range c.Problems {
		if strings.HasPrefix(problem, "right/") {
			t.Error(problem)
		}
	}
	for _, e := range c.Entries {
		if strings.HasPrefix(e.Name, "right.") || e.Word == string(reasons.Invalid) {
			got[e.Word] = fmt.Sprintf("%v %s. %s.", e.Uses, e.Cause, e.Action)
		}
	}
	want := map[string]string{
		"Held":      "[hold metric] it is held. let it go.",
		"Condition": "[condition] it is so. nothing.",
		"Alone":     "[condition] it is so. nothing.",
		"Mapped":    "[condition] it is so. nothing.",
		"Counted":   "[metric] it is so. nothing.",
		"Told":      "[Event] it is so. nothing.",
	}
	cause, action, _ := reasons.Of(reasons.Invalid)
	want["InvalidInput"] = fmt.Sprintf("[Event] %s. %s.", cause, action)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRules: each rule finds what breaks it, where it does, and nothing else.
func TestRules(t *testing.T) {
	t.Parallel()
	problems := slices.DeleteFunc(read(t, ".", "./testdata/wrong", "../../../rollout").Problems, func(p string) bool { return !strings.HasPrefix(p, "wrong/") })
	source, err := os.ReadFile("testdata/wrong/wrong.go")
	if err != nil {
		t.Fatal(err)
	}
	wanted := regexp.MustCompile(`// want "(.*)"`)
	for i, line := range strings.Split(string(source), "\n") {
		want := wanted.FindStringSubmatch(line)
		if want == nil {
			continue
		}
		pattern := regexp.MustCompile(fmt.Sprintf(`^wrong/wrong\.go:%d: .*%s`, i+1, want[1]))
		at := slices.IndexFunc(problems, pattern.MatchString)
		if at < 0 {
			t.Errorf("nothing is said of line %d: %s", i+1, line)
			continue
		}
		problems = slices.Delete(problems, at, at+1)
	}
	for _, problem := range problems {
		t.Error("not wanted:", problem)
	}
}

// TestBroken: what does not compile has no catalogue.
func TestBroken(t *testing.T) {
	t.Parallel()
	if _, err := catalogue.Read(".", "./testdata/nothing"); err == nil {
		t.Error("no error for what is not there")
	}
}
