package origin_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/registry"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/origin"
	"github.com/spillway-dev/spillway/internal/packages/repository"
)

const operator = "name: app\noperatorVersion: 0.1.0\nplans: {deploy: {}}\n"

// world is a working directory with a package, and servers.
type world struct {
	origin      origin.Origin
	http, image string
	registry    *registry.Registry
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir) // without credentials
	write(t, "app/operator.yaml", operator)
	p, err := packages.Load("app")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Archive(&b); err != nil {
		t.Fatal(err)
	}
	write(t, "served/app-0.1.0.tgz", b.String())
	files, w := httptest.NewServer(http.FileServer(http.Dir("served"))), &world{registry: &registry.Registry{}}
	images := httptest.NewServer(w.registry)
	t.Cleanup(files.Close)
	t.Cleanup(images.Close)
	index, err := repository.IndexOf("served", files.URL)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := index.Write()
	if err != nil {
		t.Fatal(err)
	}
	write(t, "served/index.yaml", string(raw))
	list := repository.List{APIVersion: "v1", Context: "local", Repositories: []repository.Repository{{Name: "local", URL: files.URL}}}
	if err := list.Save(".kudo"); err != nil {
		t.Fatal(err)
	}
	w.origin.Home, w.http, w.image = ".kudo", files.URL, "oci://"+strings.TrimPrefix(images.URL, "http://")+"/team/app"
	return w
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A package is the same, wherever it comes from.
func TestLoad(t *testing.T) {
	w := newWorld(t)
	p, err := w.origin.Load(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := w.origin.Push(t.Context(), p, w.image+":0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.origin.Push(t.Context(), p, w.image+":again")
	if err != nil || again != digest {
		t.Errorf("the same files have the digests %s and %s, %v", digest, again, err)
	}
	kudo := w.origin
	kudo.OnlyPaths = true
	for _, test := range []struct {
		origin     origin.Origin
		name, from string
	}{
		{w.origin, "app", "app"},
		{w.origin, "./app", "./app"},
		{kudo, "./app", "./app"},
		{kudo, "app", w.http + "/app-0.1.0.tgz"},
		{w.origin, "served/app-0.1.0.tgz", "served/app-0.1.0.tgz"},
		{w.origin, w.http + "/app-0.1.0.tgz", w.http + "/app-0.1.0.tgz"},
		{w.origin, w.image + ":0.1.0", w.image + ":0.1.0@" + digest},
		{w.origin, w.image + "@" + digest, w.image + "@" + digest},
	} {
		got, err := test.origin.Load(t.Context(), test.name)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got.From != test.from || got.VersionName() != p.VersionName() {
			t.Errorf("%s is %s from %s, want it from %s", test.name, got.VersionName(), got.From, test.from)
		}
	}
}

// What is not found, or not what it is said to be, is named, and what to do about it.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	none := w.origin
	none.Home = "none"
	other := w.origin
	other.Repository = "other"
	p, err := w.origin.Load(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := w.origin.Push(t.Context(), p, w.image+":0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	absent := "sha256:" + strings.Repeat("0", 64)
	for _, test := range []struct {
		origin     origin.Origin
		name, want string
	}{
		{none, "kafka", "kafka not found: there is no such directory, and no repository of packages is configured; name a directory"},
		{w.origin, "kafka", "repository local: package kafka not found; see them with: spillway package search -a --repo local"},
		{other, "app", "repository other not found; see all with"},
		{w.origin, "./kafka", "./kafka cannot be read: no such file or directory"},
		{w.origin, w.http + "/none.tgz", "cannot be downloaded: the server answers 404 Not Found"},
		{w.origin, w.http + "/index.yaml", "is no archive of a package"},
		{w.origin, "http://127.0.0.1:1/app.tgz", "cannot be reached: connections are refused; check the address and the network"},
		{w.origin, w.image, "is no reference of an artifact: it has no tag and no digest; use oci://REGISTRY/NAME:TAG or"},
		{w.origin, w.image + ":none", "cannot be downloaded: "},
		{w.origin, w.image + "@" + absent, "cannot be downloaded: "},
		{w.origin, "oci://127.0.0.1:1/app:x", "cannot be reached: connections are refused"},
	} {
		if _, err := test.origin.Load(t.Context(), test.name); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: it says %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := w.origin.Push(t.Context(), p, w.image+"@"+digest); err == nil || !strings.Contains(err.Error(), "pushed to a tag, not to a digest") {
		t.Errorf("of a push to a digest it says %v", err)
	}
	w.registry.Replace(func(content []byte) []byte { return bytes.ReplaceAll(content, []byte("a"), []byte("b")) })
	if _, err := w.origin.Load(t.Context(), w.image+"@"+digest); err == nil || !strings.Contains(err.Error(), "cannot be downloaded: ") {
		t.Errorf("of another content it says %v", err)
	}
}
