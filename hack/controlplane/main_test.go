package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const goMod = "module example.test\nrequire (\n\tgo.etcd.io/etcd/server/v3 v3.7.1 // indirect\n\tk8s.io/kubernetes v1.37.0\n\tsigs.k8s.io/kwok v0.8.0\n)\n"

// compiler stands for go, which would build for ten minutes. Its programs say that they were built.
const compiler = `#!/bin/sh
echo "$@" >>"$(dirname "$0")/asked"
if [ "$1" = list ]; then printf 'a\nb\nc\n'; exit; fi
if [ "$1" = mod ]; then printf '{"Dir": "%s/released"}' "$(dirname "$0")"; exit; fi
cp go.mod "$(dirname "$0")/built-from"
for last; do :; done
while [ "$1" != -o ]; do shift; done
into=$2; shift 2
for pkg; do
  echo "$pkg" >&2
  case $pkg in */v3) name=server ;; *) name=${pkg##*/} ;; esac
  echo "$name was built" >"$into$name"
done
echo "# a warning" >&2
`

// site publishes what the projects publish.
type site struct {
	*httptest.Server
	files map[string][]byte

	mu sync.Mutex
	// answer replaces an answer, by the end of a path.
	answer map[string]http.HandlerFunc
	asked  []string
}

func publish(t *testing.T) *site {
	t.Helper()
	s := &site{files: map[string][]byte{}, answer: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	where := sources{"", ""}
	var sums strings.Builder
	for _, on := range platforms() {
		for _, of := range programs() {
			version := map[string]string{kubernetes: "v1.37.0", etcd: "v3.7.1", kwok: "v0.8.0"}[of.project]
			path, member := where.file(of, version, on)
			content := []byte(of.name + " for " + on.String())
			if member != "" {
				content = archive(t, member, content)
				fmt.Fprintf(&sums, "%s  %s\n", sum(content), filepath.Base(path))
			}
			s.files[path] = content
			if from := where.checksums(of, version, path); of.project == kubernetes {
				s.files[from] = []byte(sum(content))
			}
		}
	}
	s.files["/etcd-io/etcd/releases/download/v3.7.1/SHA256SUMS"] = []byte(sums.String())
	return s
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path)
	s.mu.Unlock()
	for end, answer := range s.answer {
		if strings.HasSuffix(r.URL.Path, end) {
			answer(w, r)
			return
		}
	}
	content, ok := s.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}

func archive(t *testing.T, member string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	packed := tar.NewWriter(zipped)
	for name, file := range map[string][]byte{filepath.Dir(member) + "/README.md": []byte("read"), member: content} {
		if err := packed.WriteHeader(&tar.Header{Name: name, Size: int64(len(file)), Mode: 0o755, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := packed.Write(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sum(content []byte) string {
	of := sha256.Sum256(content)
	return hex.EncodeToString(of[:])
}

// at is a finder of a checkout of its own, with an empty cache, and what it tells.
func at(t *testing.T, s *site) (*finder, *bytes.Buffer) {
	t.Helper()
	root, cache := t.TempDir(), t.TempDir()
	t.Setenv("SPILLWAY_CACHE", cache)
	for name, content := range map[string]string{"go.mod": goMod, "go.sum": "", "go": compiler, "downloads.txt": ""} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	told := &bytes.Buffer{}
	return &finder{
		module: root, table: filepath.Join(root, "downloads.txt"), cache: filepath.Join(cache, "k8s"),
		platform: platforms()[0], sources: sources{s.URL, s.URL}, progress: told, golang: filepath.Join(root, "go"), env: []string{"GOFLAGS=-buildvcs=false"},
	}, told
}

// pinned is a finder whose table was pinned from the site.
func pinned(t *testing.T, s *site) (*finder, *bytes.Buffer) {
	t.Helper()
	f, told := at(t, s)
	if err := f.pin(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.asked = nil
	return f, told
}

func find(t *testing.T, f *finder) string {
	t.Helper()
	folder, err := f.find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// built fails unless these programs of a folder were built, and the others fetched, and nothing else is left in the
// cache. It returns how often the compiler was asked to build.
func built(t *testing.T, f *finder, folder string, want ...string) {
	t.Helper()
	for _, of := range programs() {
		expected := of.name + " for linux/amd64"
		if slices.Contains(want, of.name) {
			expected = executable(of.pkg) + " was built\n"
		}
		info, err := os.Stat(filepath.Join(folder, of.name))
		if err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %v, %v", of.name, err, info)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(folder, of.name)); err != nil || string(got) != expected {
			t.Errorf("%s is %q, %v", of.name, got, err)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != len(programs()) {
		t.Errorf("there are %v, %v", entries, err)
	}
	for _, left := range []string{"programs/.[fbu]*", ".linking*"} {
		if found, err := filepath.Glob(filepath.Join(f.cache, left)); err != nil || len(found) > 0 {
			t.Errorf("%v is left, %v", found, err)
		}
	}
}

// builds are the packages that the compiler was asked to build, a line each time.
func builds(t *testing.T, f *finder) (lines []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(f.module, "asked"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if _, after, ok := strings.Cut(line, " -o "); ok {
			_, packages, _ := strings.Cut(strings.TrimSpace(after), " ")
			lines = append(lines, packages)
		}
	}
	return lines
}

func names() (all []string) {
	for _, p := range programs() {
		all = append(all, p.name)
	}
	return all
}

// What is pinned and can be reached is fetched, once.
func TestFetched(t *testing.T) {
	s := publish(t)
	f, told := pinned(t, s)
	folder := find(t, f)
	built(t, f, folder)
	if len(builds(t, f)) > 0 || !strings.Contains(told.String(), "fetching 6 programs of the control plane, once") {
		t.Errorf("it says %s", told)
	}
	asked := len(s.asked)
	if again := find(t, f); again != folder || len(s.asked) != asked {
		t.Errorf("then it is %s, and asks for %v", again, s.asked[asked:])
	}
	f.insist = true
	built(t, f, find(t, f), names()...)
}

// Another version of Kubernetes is built from its own module, once; the other programs are those of
// this checkout, and nothing that the compiler keeps is left.
func TestAnotherVersion(t *testing.T) {
	f, _ := pinned(t, publish(t))
	own := find(t, f)
	released := filepath.Join(f.module, "released")
	const released130 = "module k8s.io/kubernetes\n\ngo 1.22.0\n\nrequire k8s.io/api v0.0.0\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n"
	if err := errors.Join(os.Mkdir(released, 0o700), os.WriteFile(filepath.Join(released, "go.mod"), []byte(released130), 0o600), os.WriteFile(filepath.Join(released, "go.sum"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := f.setKubernetes("1.30.14"); err != nil {
		t.Fatal(err)
	}
	older := find(t, f)
	built(t, f, older, "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	if !strings.HasPrefix(filepath.Base(older), "v1.30.14-linux-amd64-") || older == own {
		t.Errorf("it is in %s", older)
	}
	const want = "module example.test/k8s\n\nrequire k8s.io/kubernetes v1.30.14\n\ngo 1.22.0\n\nrequire k8s.io/api v0.0.0\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.30.14\n)\n"
	if got, err := os.ReadFile(filepath.Join(f.module, "built-from")); err != nil || string(got) != want {
		t.Errorf("it is built from %s, %v", got, err)
	}
	if asked, err := os.ReadFile(filepath.Join(f.module, "asked")); err != nil || !strings.Contains(string(asked), "gitVersion=v1.30.14") {
		t.Errorf("it asks %s, %v", asked, err)
	}
	if find(t, f) != older || len(builds(t, f)) != 1 {
		t.Errorf("it is built again: %v", builds(t, f))
	}
	for _, wrong := range []string{"1.30", "latest", "1.30.14 x", "../1.30.14"} {
		if f.setKubernetes(wrong) == nil {
			t.Errorf("%q is no mistake", wrong)
		}
	}
}

// A program that arrives otherwise is not used. It is built, and the others are not.
func TestNotFetched(t *testing.T) {
	defer func(a, b, c time.Duration) { answerIn, stalled, tellEach = a, b, c }(answerIn, stalled, tellEach)
	answerIn, stalled, tellEach = time.Second, 200*time.Millisecond, 20*time.Millisecond
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"wrong":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("another program")) }, "which downloads.txt pins; it was not used"},
		"truncated": {truncated, "unexpected EOF"},
		"stalled":   {stall, "nothing has arrived for 200ms"},
		"silent":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "timeout awaiting response headers"},
		"missing":   {http.NotFound, "404 Not Found"},
		"refused":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "blocked", http.StatusForbidden) }, "403 Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			s := publish(t)
			f, told := pinned(t, s)
			s.answer["/kube-scheduler"] = test.answer
			built(t, f, find(t, f), "kube-scheduler")
			if !strings.Contains(told.String(), test.says) || !strings.Contains(told.String(), "building kube-scheduler from Go modules instead") {
				t.Errorf("it says %s", told)
			}
			asked := len(s.asked)
			find(t, f)
			if got := builds(t, f); len(s.asked) != asked || !slices.Equal(got, []string{"k8s.io/kubernetes/cmd/kube-scheduler"}) {
				t.Errorf("it is built by %v, and asked for %v again", got, s.asked[asked:])
			}
		})
	}
}

func truncated(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte("kube"))
}

func stall(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte("kube"))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// Slow is no mistake while something arrives.
func TestSlow(t *testing.T) {
	defer func(a, b time.Duration) { stalled, tellEach = a, b }(stalled, tellEach)
	stalled, tellEach = 500*time.Millisecond, 50*time.Millisecond
	s := publish(t)
	f, told := pinned(t, s)
	s.answer["/kube-apiserver"] = func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(40 * time.Millisecond)
		defer tick.Stop()
		for _, b := range s.files[r.URL.Path] {
			<-tick.C
			_, _ = w.Write([]byte{b})
			_ = http.NewResponseController(w).Flush()
		}
	}
	built(t, f, find(t, f))
	if !strings.Contains(told.String(), " MB") {
		t.Errorf("it says no progress: %s", told)
	}
}

// What is not pinned for the versions of the module is built, by one command, and all else is fetched.
func TestNotPinned(t *testing.T) {
	kubernetes := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}
	for name, test := range map[string]struct {
		change func(t *testing.T, f *finder)
		built  []string
	}{
		"nothing": {func(t *testing.T, f *finder) { t.Helper(); write(t, f.table, "") }, names()},
		"a line is missing": {func(t *testing.T, f *finder) {
			t.Helper()
			raw, err := os.ReadFile(f.table)
			if err != nil {
				t.Fatal(err)
			}
			write(t, f.table, regexp.MustCompile("(?m)^etcd .*amd64.*\n").ReplaceAllString(string(raw), ""))
		}, []string{"etcd"}},
		"another version": {func(t *testing.T, f *finder) {
			t.Helper()
			write(t, filepath.Join(f.module, "go.mod"), strings.Replace(goMod, "v1.37.0", "v1.37.1", 1))
		}, kubernetes},
	} {
		t.Run(name, func(t *testing.T) {
			s := publish(t)
			f, told := pinned(t, s)
			test.change(t, f)
			built(t, f, find(t, f), test.built...)
			if len(builds(t, f)) != 1 || len(s.asked) != len(programs())-len(test.built) {
				t.Errorf("it is built by %v, and asks for %v", builds(t, f), s.asked)
			}
			if says := "building " + strings.Join(test.built, ", ") + " for linux/amd64 from Go modules, once"; !strings.Contains(told.String(), says) {
				t.Errorf("it says %s instead of %s", told, says)
			}
		})
	}
}

// Where Kubernetes publishes no servers, it is said before anything starts what happens and what else can be done.
func TestElsewhere(t *testing.T) {
	s := publish(t)
	f, told := pinned(t, s)
	f.platform = platform{"darwin", "arm64"}
	built(t, f, find(t, f), names()...)
	if len(s.asked) > 0 || !strings.Contains(told.String(), "Kubernetes publishes no API server for darwin/arm64. To use a cluster that you have") {
		t.Errorf("it asks for %v, and says %s", s.asked, told)
	}
}

// The output says how many packages are compiled, of how many, and an error has what the compiler says.
func TestProgress(t *testing.T) {
	defer func(before time.Duration) { tellEach = before }(tellEach)
	tellEach = 0
	f, told := at(t, publish(t))
	find(t, f)
	if !strings.Contains(told.String(), "  3 of 3 packages, ") {
		t.Errorf("it says %s", told)
	}
	f, _ = at(t, publish(t))
	write(t, f.golang, "#!/bin/sh\necho '# a/b' >&2\necho 'x.go:1: no' >&2\n[ $1 = list ]\n")
	if _, err := f.find(t.Context()); err == nil || !strings.Contains(err.Error(), "x.go:1: no") {
		t.Errorf("%v", err)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What its project says is something else is not pinned.
func TestPinRefuses(t *testing.T) {
	for _, end := range []string{"/linux/arm64/kubectl", "-linux-arm64.tar.gz"} {
		s := publish(t)
		f, _ := pinned(t, s)
		before, err := os.ReadFile(f.table)
		if err != nil {
			t.Fatal(err)
		}
		s.answer[end] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("another")) }
		if err := f.pin(t.Context()); err == nil || !strings.Contains(err.Error(), "which "+s.URL) {
			t.Errorf("%s: %v", end, err)
		}
		if after, err := os.ReadFile(f.table); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the table is %s, %v", end, after, err)
		}
	}
}

// Who interrupts does not want it built instead.
func TestInterrupted(t *testing.T) {
	s := publish(t)
	f, _ := pinned(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	s.answer["/kubectl"] = func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() }
	if folder, err := f.find(ctx); err == nil || len(builds(t, f)) > 0 {
		t.Errorf("it is %s, built by %v", folder, builds(t, f))
	}
}

// The table of the repository has every program of every platform, in the version of the module.
func TestRepository(t *testing.T) {
	raw, err := os.ReadFile("downloads.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(raw), heading) {
		t.Error("downloads.txt does not begin as make pin writes it")
	}
	f, err := newFinder(t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, f.platform = range platforms() {
		all, err := f.programs()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			if m.pin == nil {
				t.Errorf("%s %s for %s is not pinned", m.name, m.version, f.platform)
			}
		}
	}
	for _, bad := range []string{"etcd v3.7.1 linux/amd64 abc", "kubelet v1.37.0 linux/amd64 " + sum(nil), "etcd v3.7.1 plan9/amd64 " + sum(nil)} {
		if _, err := parsePins([]byte(bad)); err == nil {
			t.Errorf("it takes %s", bad)
		}
	}
}
