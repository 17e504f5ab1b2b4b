package repository_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/packages/repository"
)

// archive is a package as a .tgz.
func archive(t testing.TB, name, appVersion, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	text := fmt.Sprintf("apiVersion: kudo.dev/v1beta1\nname: %s\noperatorVersion: %s\nappVersion: %q\n", name, version, appVersion)
	if err := w.WriteHeader(&tar.Header{Name: "operator.yaml", Size: int64(len(text)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The index of a directory is written, served, read, and leads to the archives again.
func TestIndexOfADirectory(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	for _, v := range [][2]string{{"2.2.1", "0.9.0"}, {"2.2.1", "0.10.0"}, {"3.0.0", "0.10.0"}} {
		write(t, filepath.Join(dir, "kafka-"+v[0]+"-"+v[1]+".tgz"), archive(t, "kafka", v[0], v[1]))
	}
	index, err := repository.IndexOf(dir, server.URL+"/")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := index.Write()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "index.yaml"), raw)
	r := repository.Repository{Name: "local", URL: server.URL}
	for want, file := range map[repository.Wanted]string{
		{Name: "kafka"}:                                                 "kafka-3.0.0-0.10.0.tgz",
		{Name: "kafka", AppVersion: "2.2.1"}:                            "kafka-2.2.1-0.10.0.tgz",
		{Name: "kafka", OperatorVersion: "0.9.0"}:                       "kafka-2.2.1-0.9.0.tgz",
		{Name: "kafka", AppVersion: "3.0.0", OperatorVersion: "0.10.0"}: "kafka-3.0.0-0.10.0.tgz",
	} {
		content, from, err := repository.NewClient().Archive(t.Context(), r, want)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if from != server.URL+"/"+file || len(content) == 0 {
			t.Errorf("%s is found at %s, want %s", want, from, file)
		}
	}
	_, _, err = repository.NewClient().Archive(t.Context(), r, repository.Wanted{Name: "kafka", OperatorVersion: "7.0.0"})
	if want := "repository local: package kafka 7.0.0 not found; it has 0.10.0 (application version 3.0.0), 0.10.0 (application version 2.2.1), 0.9.0 (application version 2.2.1); see them with: spillway package search -a --repo local"; err == nil || err.Error() != want {
		t.Errorf("it says %v", err)
	}
	write(t, filepath.Join(dir, "again.tgz"), archive(t, "kafka", "3.0.0", "0.10.0"))
	if _, err := repository.IndexOf(dir, server.URL); err == nil || !strings.Contains(err.Error(), "package kafka 0.10.0 (application version 3.0.0) exists in two archives") {
		t.Errorf("of two archives with one version it says %v", err)
	}
}

// What a server sends is bounded, and used only if it is what the index says.
func TestHostileServers(t *testing.T) {
	good := archive(t, "app", "", "0.1.0")
	sum := sha256.Sum256(good)
	digest := hex.EncodeToString(sum[:])
	entry := func(more string) string {
		return "apiVersion: v1\nentries:\n  app:\n  - {name: app, operatorVersion: 0.1.0, urls: [app.tgz]" + more + "}\n"
	}
	endless := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		index, want string
		serve       http.HandlerFunc
	}{
		"the right digest":       {index: entry(", digest: " + digest)},
		"a prefix of the digest": {index: entry(", digest: sha256:" + strings.ToUpper(digest))},
		"another digest":         {index: entry(", digest: abcd"), want: "has the digest " + digest + ", and the index says abcd; do not use it before you know why"},
		"no package":             {index: "apiVersion: v1\nentries: {}\n", want: "package app not found"},
		"another format":         {index: "apiVersion: v2\n", want: `apiVersion: "v2" is not known; it must be v1`},
		"no YAML":                {index: "a: [", want: "index.yaml: invalid YAML"},
		"another name":           {index: "apiVersion: v1\nentries: {app: [{name: b}]}\n", want: "entry 0 must have the name app"},
		"an alias bomb":          {index: "a: &a [x,x,x,x,x,x,x,x,x]\n" + aliases(), want: "index.yaml: invalid YAML"},
		"too large": {index: entry(""), want: "has more than 16 MiB", serve: func(w http.ResponseWriter, _ *http.Request) {
			for range 20 {
				_, _ = w.Write([]byte(endless))
			}
		}},
		"redirects for ever": {index: entry(""), want: "redirects too often", serve: func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, q.URL.Path, http.StatusFound)
		}},
		"an error": {index: entry(""), want: "the server answers 500 Internal Server Error", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(test.index)) })
			mux.HandleFunc("/app.tgz", func(w http.ResponseWriter, q *http.Request) {
				if test.serve != nil {
					test.serve(w, q)
					return
				}
				_, _ = w.Write(good)
			})
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			_, _, err := repository.NewClient().Archive(t.Context(), repository.Repository{Name: "r", URL: server.URL}, repository.Wanted{Name: "app"})
			if test.want == "" && err != nil {
				t.Error(err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("it says %v, want %q", err, test.want)
			}
		})
	}
}

// aliases doubles a list again and again.
func aliases() string {
	var b strings.Builder
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		fmt.Fprintf(&b, "%c: &%c [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n", c, c, p, p, p, p, p, p, p, p, p)
	}
	return b.String()
}

// A repository that is read over HTTPS does not lead to what could be changed between the two.
func TestNoDowngrade(t *testing.T) {
	redirect, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.com/app.tgz", nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/app.tgz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := repository.StaysSafe(redirect, []*http.Request{first}); err == nil || err.Error() != "redirects from HTTPS to http://example.com/app.tgz" {
		t.Errorf("it says %v", err)
	}
}

func TestList(t *testing.T) {
	home := filepath.Join(t.TempDir(), ".kudo")
	list, err := repository.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := list.Get(""); err == nil || !strings.Contains(err.Error(), "no repository is configured; add one with:") {
		t.Errorf("of an empty list it says %v", err)
	}
	for name, at := range map[string]string{"team": "https://a.example.com"} {
		if err := list.Add(repository.Repository{Name: name, URL: at}); err != nil {
			t.Fatal(err)
		}
	}
	for want, err := range map[string]error{
		`"ftp://x" is no address of a repository`:                            list.Add(repository.Repository{Name: "x", URL: "ftp://x"}),
		"repository team exists; choose another name":                        list.Add(repository.Repository{Name: "team", URL: "https://b"}),
		"repository teem not found; did you mean team?":                      list.SetContext("teem"),
		"repository other not found; see all with: spillway package repo li": list.Remove("other"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
	if err := list.Save(home); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(home, "repository", "repositories.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "apiVersion: v1\ncontext: team\nrepositories:\n- name: team\n  url: https://a.example.com\n"; string(raw) != want {
		t.Errorf("the file is\n%s", raw)
	}
	if list, err = repository.Open(home); err != nil {
		t.Fatal(err)
	}
	if r, err := list.Get(""); err != nil || r.URL != "https://a.example.com" {
		t.Errorf("the context is %v, %v", r, err)
	}
	if err := list.Remove("team"); err != nil || list.Context != "" {
		t.Errorf("after the removal the context is %q, %v", list.Context, err)
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nentries:\n  a:\n  - {name: a, operatorVersion: 1.0.0, urls: [x]}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		index, err := repository.ParseIndex(raw)
		if err != nil {
			return
		}
		for _, e := range index.Search("", true) {
			if _, err := index.Find(repository.Wanted{Name: e.Name, AppVersion: e.AppVersion, OperatorVersion: e.OperatorVersion}); err != nil {
				t.Error(err)
			}
		}
	})
}
