package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const goMod = "module example.test\nrequire (\n\tgo.etcd.io/etcd/server/v3 v3.7.0 // indirect\n\tk8s.io/kubernetes v1.37.0\n\tsigs.k8s.io/kwok v0.8.0\n)\n"

// script stands for the one that builds for twenty minutes.
const script = "#!/bin/sh\nmkdir -p \"$SPILLWAY_CACHE/k8s/from-modules\"\necho built >&2\necho \"$SPILLWAY_CACHE/k8s/from-modules\"\n"

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
			version := map[string]string{kubernetes: "v1.37.0", etcd: "v3.7.0", kwok: "v0.8.0"}[of.project]
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
	s.files["/etcd-io/etcd/releases/download/v3.7.0/SHA256SUMS"] = []byte(sums.String())
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
	for name, content := range map[string]string{"go.mod": goMod, "go.sum": "", "build.sh": script, "downloads.txt": ""} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	told := &bytes.Buffer{}
	return &finder{
		module: root, table: filepath.Join(root, "downloads.txt"), cache: filepath.Join(cache, "k8s"),
		platform: platforms()[0], sources: sources{s.URL, s.URL}, progress: told,
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
	folder, err := f.find(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// left fails if a program that was not checked, or a part of one, is in the cache.
func left(t *testing.T, f *finder) {
	t.Helper()
	entries, err := os.ReadDir(f.cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "from-modules" {
			t.Errorf("%s is left", entry.Name())
		}
	}
}

// What is pinned and can be reached is fetched, once.
func TestFetched(t *testing.T) {
	s := publish(t)
	f, told := pinned(t, s)
	folder := find(t, f)
	for _, of := range programs() {
		info, err := os.Stat(filepath.Join(folder, of.name))
		if err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %v, %v", of.name, err, info)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(folder, of.name)); err != nil || string(got) != of.name+" for linux/amd64" {
			t.Errorf("%s is %q, %v", of.name, got, err)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != len(programs()) {
		t.Errorf("there are %v, %v", entries, err)
	}
	if strings.Contains(told.String(), "built") || !strings.Contains(told.String(), "fetching the control plane, Kubernetes v1.37.0") {
		t.Errorf("it says %s", told)
	}
	asked := len(s.asked)
	if again := find(t, f); again != folder || len(s.asked) != asked {
		t.Errorf("then it is %s, and asks for %v", again, s.asked[asked:])
	}
	if insisted, err := f.find(t.Context(), true); err != nil || filepath.Base(insisted) != "from-modules" {
		t.Errorf("--build: %s, %v", insisted, err)
	}
}

// Whatever else arrives is not used, and the control plane is built.
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
			if folder := find(t, f); filepath.Base(folder) != "from-modules" {
				t.Errorf("it is %s", folder)
			}
			if !strings.Contains(told.String(), test.says) || !strings.Contains(told.String(), "kube-scheduler") || !strings.Contains(told.String(), "building from Go modules instead") {
				t.Errorf("it says %s", told)
			}
			left(t, f)
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
	if folder := find(t, f); !strings.Contains(folder, "-fetched-") {
		t.Errorf("it is %s: %s", folder, told)
	}
	if !strings.Contains(told.String(), " MB") {
		t.Errorf("it says no progress: %s", told)
	}
}

// Nothing is fetched that is not pinned for the versions of the module, or if it was built.
func TestNotAsked(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, f *finder){
		"no pins": func(t *testing.T, f *finder) { t.Helper(); write(t, f.table, "") },
		"other versions": func(t *testing.T, f *finder) {
			t.Helper()
			write(t, filepath.Join(f.module, "go.mod"), strings.Replace(goMod, "v1.37.0", "v1.37.1", 1))
		},
		"another platform": func(_ *testing.T, f *finder) { f.platform = platform{"darwin", "arm64"} },
		"built": func(t *testing.T, f *finder) {
			t.Helper()
			versions, err := f.versions()
			if err != nil {
				t.Fatal(err)
			}
			folder, err := f.built(versions)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := publish(t)
			f, _ := pinned(t, s)
			change(t, f)
			if folder := find(t, f); strings.Contains(folder, "-fetched-") || len(s.asked) > 0 {
				t.Errorf("it is %s, and asks for %v", folder, s.asked)
			}
		})
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
	if folder, err := f.find(ctx, false); err == nil {
		t.Errorf("it is %s", folder)
	}
}

// The table of the repository can be read, and where the control plane was built is found.
func TestRepository(t *testing.T) {
	raw, err := os.ReadFile("downloads.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(raw), heading) {
		t.Error("downloads.txt does not begin as make pin writes it")
	}
	if _, err := parsePins(raw); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"etcd v3.7.0 linux/amd64 abc", "kubelet v1.37.0 linux/amd64 " + sum(nil), "etcd v3.7.0 plan9/amd64 " + sum(nil)} {
		if _, err := parsePins([]byte(bad)); err == nil {
			t.Errorf("it takes %s", bad)
		}
	}
	f, err := newFinder(t.Output())
	if err != nil {
		t.Fatal(err)
	}
	versions, err := f.versions()
	if err != nil {
		t.Fatal(err)
	}
	built, err := f.built(versions)
	if err != nil {
		t.Fatal(err)
	}
	if !isFolder(built) {
		t.Logf("%s was not built", built)
		return
	}
	if folder, err := f.build(t.Context()); err != nil || folder != built {
		t.Errorf("hack/k8s/build.sh says %s, %v; expected %s", folder, err, built)
	}
}
