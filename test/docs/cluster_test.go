package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// namespaces are where the commands of a page run that name no namespace; of others it is shop.
var namespaces = map[string]string{
	"docs/admission.md": "mimir", "docs/fleet.md": "clusters", "docs/notify.md": "mimir", "docs/scaling.md": "mimir", "docs/traces.md": "mimir", "docs/zones.md": "mimir",
}

// reader is a person with a cluster, in a folder with the files of the repository.
type reader struct {
	folder string
	env    []string
	// sections are the fixtures of the page that have not run yet.
	sections []fixture
	// words are what stands for something else on the page, such as NAME, each with what it is here.
	words []string
	// changed is true if the page before has changed the installation.
	changed bool
}

// TestBlocksOnACluster runs what pages tell the reader to type and that needs a cluster, block
// after block. What a page takes for granted is made before by testdata/PAGE.sh.
func TestBlocksOnACluster(t *testing.T) {
	r := newReader(t)
	for _, p := range pages(t) {
		if typed[p.name] != nil || !p.needsCluster() {
			continue
		}
		t.Run(p.name, func(t *testing.T) { r.follow(t, p) })
	}
}

// needsCluster is true if a block of the page is run or applied on a cluster.
func (p page) needsCluster() bool {
	for _, b := range p.blocks() {
		if b.onCluster() || b.isApplied() {
			return true
		}
	}
	return false
}

// isApplied is true of a manifest that the API server checks.
func (b block) isApplied() bool { return b.class == "yaml" && !strings.HasPrefix(b.note, notRun) }

// onCluster is true of a block that is run on a cluster: not all of it can be run without.
func (b block) onCluster() bool {
	if typed[b.page] != nil || strings.HasPrefix(b.note, notRun) {
		return false
	}
	if b.prepared {
		return b.class == "sh" || b.class == "console"
	}
	for line := range strings.SplitSeq(b.script(), "\n") {
		if len(commandsOf(line)) > 0 && !b.isRun(line) {
			return true
		}
	}
	return false
}

// script is what is typed of a block, a line each.
func (b block) script() string {
	switch b.class {
	case "sh":
		return strings.ReplaceAll(strings.Join(b.body, "\n"), "\\\n", " ")
	case "console":
		var lines []string
		for _, s := range b.sessions() {
			lines = append(lines, strings.ReplaceAll(s.line, "\\\n", " "))
		}
		return strings.Join(lines, "\n")
	default:
		return ""
	}
}

// follow types the blocks of a page.
func (r *reader) follow(t *testing.T, p page) {
	t.Helper()
	r.use(t, p)
	for _, b := range p.blocks() {
		switch {
		case b.isApplied():
			r.apply(t, b)
		case b.onCluster():
			r.prepare(t, b.script())
			r.typeIn(t, b)
		}
	}
	for _, s := range r.sections {
		t.Errorf("the fixture before %q has not run", s.before)
	}
}

// typeIn types a block, which must succeed but for the command that the comment above it names.
func (r *reader) typeIn(t *testing.T, b block) {
	t.Helper()
	script := strings.NewReplacer(r.words...).Replace(b.script())
	if note, ok := strings.CutPrefix(b.note, exits); ok {
		code, command, _ := strings.Cut(note, ": ")
		line := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(command) + ".*$")
		if !line.MatchString(script) {
			t.Errorf("%s: no line begins with %q", b, command)
		}
		script = line.ReplaceAllString(script, "set +e\n$0\ncode=$$?\nset -e\n[ $$code = "+code+" ]")
	}
	if out, err := r.run(t, script, ""); err != nil {
		t.Errorf("%s: %v:\n%s", b, err, out)
	}
}

// apply has the API server check a manifest, or a part of one in the object that the comment
// above it names. Nothing is stored.
func (r *reader) apply(t *testing.T, b block) {
	t.Helper()
	text := strings.Join(b.body, "\n")
	r.prepare(t, text)
	script := "kubectl apply --dry-run=server --validate=strict -f -"
	if b.note == values {
		script = "spillway install --export --values=-"
	}
	if name, ok := strings.CutPrefix(b.note, partOf); ok {
		name, path, _ := strings.Cut(name, " at ")
		script = "kubectl patch " + name + " --type=merge --dry-run=server --patch-file=/dev/stdin"
		text = inside(strings.FieldsFunc(path, func(r rune) bool { return r == '.' }), text)
	}
	if out, err := r.run(t, script, text); err != nil || strings.Contains(out, "unknown field") {
		t.Errorf("%s: %v: the API server refuses it:\n%s", b, err, out)
	}
}

// inside is YAML as the value of a field, given by its path.
func inside(path []string, text string) string {
	for _, field := range slices.Backward(path) {
		text = field + ":\n  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	return text
}

// run runs a script as one that stops at the first command that fails.
func (r *reader) run(t *testing.T, script, stdin string) (string, error) {
	t.Helper()
	if stdin == "" {
		stdin = strings.Repeat("y\n", 10) // the reader agrees
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // what is waited for takes seconds
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stdin = r.folder, r.env, strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// What comments above blocks begin with.
const (
	// exits says with which code a command ends, and how the command begins.
	exits = "exits "
	// partOf names the object that a part of a manifest belongs to, and where.
	partOf = "part of "
	// values marks what the chart and the command install read.
	values = "values"
)

// section begins with what is done before the first block that contains its text.
var section = regexp.MustCompile(`(?m)^#### (.*)\n`)

// prepare makes what a block takes for granted, once each.
func (r *reader) prepare(t *testing.T, block string) {
	t.Helper()
	rest := r.sections[:0:0]
	for _, s := range r.sections {
		if !strings.Contains(block, s.before) {
			rest = append(rest, s)
			continue
		}
		r.must(t, s.script)
	}
	r.sections = rest
	r.readWords(t)
}

// fixture is a script, and a text of the block that it runs before.
type fixture struct{ before, script string }

// fixturesOf are those of a page.
func fixturesOf(t *testing.T, name string) []fixture {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "/", "-")+".sh"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var found []fixture
	text, at := string(raw), section.FindAllSubmatchIndex(raw, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		found = append(found, fixture{text[m[2]:m[3]], text[m[1]:end]})
	}
	return found
}

// must runs a script of the test.
func (r *reader) must(t *testing.T, script string) {
	t.Helper()
	functions, err := os.ReadFile(filepath.Join("testdata", "functions.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := r.run(t, string(functions)+script, ""); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (r *reader) wordsFile() string { return filepath.Join(r.folder, "WORDS") }

// readWords reads what fixtures have written to the file WORDS: a word of the page and what
// it is here, a line each.
func (r *reader) readWords(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(r.wordsFile())
	if err != nil {
		t.Fatal(err)
	}
	r.words = strings.Fields(string(raw))
}

// use begins a page: it runs in the page's namespace, on the installation that others began with.
func (r *reader) use(t *testing.T, p page) {
	t.Helper()
	namespace := "shop"
	if other, ok := namespaces[p.name]; ok {
		namespace = other
	}
	r.sections, r.words = p.fixtures, nil
	if err := os.WriteFile(r.wordsFile(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r.changed {
		r.must(t, "install_all --no-crds")
	}
	r.changed = strings.Contains(strings.Join(p.lines, "\n"), "spillway install") || strings.Contains(strings.Join(p.lines, "\n"), "spillway uninstall")
	r.must(t, "kubectl config set-context --current --namespace="+namespace)
}

// newReader makes the cluster of the pages, on which a manager works.
func newReader(t *testing.T) *reader {
	t.Helper()
	assets, err := controlplane.Assets(t.Context(), io.Discard) // kubectl is among them
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{folder: t.TempDir()}
	port, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	r.env = append(os.Environ(), "PATH="+programs(t)+":"+assets+":"+os.Getenv("PATH"), "COLUMNS=80", "HOME="+r.folder, "TMPDIR="+r.folder,
		"KUBECONFIG="+r.kubeconfig(t), "KUBE_EDITOR=sed -i s/plain/colored/", interrupted+"=yes", fmt.Sprint("METRICS=localhost:", port))
	files, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "bin" { // pages write to it
			continue
		}
		path, err := filepath.Abs(file)
		if err := errors.Join(err, os.Symlink(path, filepath.Join(r.folder, filepath.Base(file)))); err != nil {
			t.Fatal(err)
		}
	}
	r.use(t, page{})
	r.must(t, "make_world")
	r.manage(t)
	r.must(t, "await_world")
	return r
}

// kubeconfig is a copy of the one of the tests, in which pages may change the namespace.
func (r *reader) kubeconfig(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(testenv.Shared().Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.folder, ".kube", "config")
	if err := errors.Join(clientcmd.ResolveLocalPaths(config), clientcmdapi.FlattenConfig(config), clientcmd.WriteToFile(*config, path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// manage runs a manager until the end of the test.
func (r *reader) manage(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "-c", `exec spillway manager --rings=config,zones,plans,fleet `+
		`--namespaces=shop,mimir,clusters,kafka --pin-namespaces=shop --leader-elect-namespace=spillway-system `+
		`--metrics-bind-address=$METRICS --health-probe-bind-address=0 --allow-cluster-addresses=127.0.0.0/8`)
	cmd.Dir, cmd.Env = r.folder, r.env
	log := &testenv.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
		if err != nil {
			t.Errorf("the manager ends with %v\n%s", err, log)
		}
	})
}
