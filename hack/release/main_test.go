package main

import (
	"crypto/elliptic"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/spillway-dev/spillway/hack/release/build"
	"github.com/spillway-dev/spillway/hack/release/oci"
	"github.com/spillway-dev/spillway/hack/release/packaging"
	"github.com/spillway-dev/spillway/hack/release/program"
	"github.com/spillway-dev/spillway/hack/release/source"
)

// asCommand makes the test run the command instead, so that its exit code is a real one.
const asCommand = "SPILLWAY_RELEASE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// run runs the command, and returns what it says and its exit code.
func run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "COSIGN_PASSWORD=right", "DOCKER_CONFIG="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), failed.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// refused is a command that fails with a sentence, and with exit code 1.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	out, code := run(t, args...)
	if code != 1 || !strings.Contains("\n"+out, "\nerror: ") || !strings.Contains(out, want) || strings.Contains(out, "goroutine") {
		t.Errorf("release %s: exit code %d, want 1 and %q: %s", strings.Join(args, " "), code, want, out)
	}
}

func write(t *testing.T, file string, content []byte) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

// What cannot be released is refused before anything is compiled, and a former release stays.
func TestBuildRefuses(t *testing.T) {
	root := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@example.test", "commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	former := write(t, filepath.Join(t.TempDir(), "dist", "former"), nil)
	build := func(more ...string) []string {
		return append([]string{"build", "--root", root, "--out", filepath.Dir(former)}, more...)
	}
	for _, version := range []string{"", "1.0.0", "v1", "latest", "v1.0.0+build"} {
		refused(t, "must be a semantic version such as v0.1.0", build("--version", version)...)
	}
	refused(t, "plan9", build("--version=v0.1.0", "--platforms=plan9/mips")...)
	refused(t, "git", build("--version=v0.1.0", "--root", t.TempDir())...)
	refused(t, "go: cannot find main module", build("--version=v0.1.0")...)
	write(t, filepath.Join(root, "changed"), nil)
	refused(t, "has changes that are not committed", build("--version=v0.1.0")...)
	refused(t, "unknown command", "publish")
	if _, err := os.Stat(former); err != nil {
		t.Errorf("the former release is gone: %v", err)
	}
}

// dist is a folder as build writes it, with an image of a program that does nothing.
func dist(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := oci.Spec{Source: source.Source{Version: "v0.1.0", Commit: strings.Repeat("a", 40)}, Tag: "v0.1.0", Repository: repository} //nolint:mnd // as long as one
	content, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	s.Programs = []oci.Program{{Platform: program.Platforms()[0], Content: content}}
	made, err := s.Make()
	if err != nil {
		t.Fatal(err)
	}
	if err := oci.WriteLayout(filepath.Join(dir, build.Images), []oci.Release{made}); err != nil {
		t.Fatal(err)
	}
	chart, err := program.TarGz([]program.File{{Name: "spillway/Chart.yaml", Content: []byte("{apiVersion: v2, name: spillway, version: 0.1.0}")}}, s.Source.Date)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "spillway-0.1.0.tgz"), chart)
	write(t, filepath.Join(dir, "checksums.txt"), packaging.Checksums(map[string][]byte{"spillway-0.1.0.tgz": chart}))
	return dir
}

// keys writes a pair as cosign does, and returns the files.
func keys(t *testing.T) (private, public string) {
	t.Helper()
	one, two, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), func(bool) ([]byte, error) { return []byte("right"), nil })
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return write(t, filepath.Join(dir, "cosign.key"), one), write(t, filepath.Join(dir, "cosign.pub"), two)
}

// A wrong key, a registry that refuses, and what was changed afterwards: each is one sentence
// and exit code 1, and no tag leads to it.
func TestPushAndVerify(t *testing.T) {
	var full atomic.Bool
	next := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if full.Load() && r.Method == http.MethodPut {
			http.Error(w, `{"errors":[{"code":"DENIED","message":"quota exceeded"}]}`, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
	defer server.Close()
	host, folder := strings.TrimPrefix(server.URL, "http://"), dist(t)
	private, public := keys(t)
	_, other := keys(t)
	image, chart := host+"/spillway:v0.1.0", host+"/charts/spillway:0.1.0"
	push := func(more ...string) []string {
		return append([]string{"push", "--dist", folder, "--to", host + "/spillway", "--charts-to", host + "/charts/spillway", "--key", private}, more...)
	}

	refused(t, "--key: open", push("--key=none")...)
	refused(t, "must be one that cosign generate-key-pair writes", push("--key", write(t, filepath.Join(t.TempDir(), "key"), []byte("key")))...)
	refused(t, "make release", push("--dist", t.TempDir())...)
	refused(t, "whose last part is spillway", push("--charts-to", host+"/charts")...)
	refused(t, "repository", push("--to", host+"/Not A Repository")...)
	full.Store(true)
	refused(t, "quota exceeded", push()...)
	full.Store(false)
	for _, tag := range []string{image, chart} {
		refused(t, "Unknown name", "verify", tag, "--key", public)
		ref, err := name.ParseReference(tag)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Head(ref); err == nil {
			t.Errorf("%s exists", tag)
		}
	}

	out, code := run(t, push()...)
	if code != 0 || strings.Count(out, "@sha256:") != 2 {
		t.Fatalf("push: exit code %d: %s", code, out)
	}
	for _, tag := range []string{image, chart} {
		if out, code := run(t, "verify", tag, "--key", public); code != 0 || !strings.Contains(out, "@sha256:") {
			t.Errorf("verify: exit code %d: %s", code, out)
		}
		refused(t, "the signature is not of this key", "verify", tag, "--key", other)
	}
	refused(t, "--key", "verify", image, "--key", private)

	// What was written is not there any more.
	write(t, filepath.Join(folder, build.Images, "index.json"), []byte("{}"))
	refused(t, "make release", push()...)
}
