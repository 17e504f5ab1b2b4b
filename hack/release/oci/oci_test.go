package oci_test

import (
	"archive/tar"
	"bytes"
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/spillway-dev/spillway/hack/release/oci"
	"github.com/spillway-dev/spillway/hack/release/program"
	"github.com/spillway-dev/spillway/hack/release/source"
)

// tiny is the content of a small program.
var tiny = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "tiny-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "tiny")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, "./testdata/tiny").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(file)
})

// spec is an image of a small program.
func spec(t *testing.T, version string) oci.Spec {
	t.Helper()
	content, err := tiny()
	if err != nil {
		t.Fatal(err)
	}
	s := oci.Spec{
		Source: source.Source{Version: version, Commit: strings.Repeat("a", 40), Date: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)},
		Tag:    version, Repository: "registry.example.test/spillway",
	}
	for _, p := range program.Platforms()[:2] {
		s.Programs = append(s.Programs, oci.Program{Platform: p, Content: content, Licenses: []byte("licenses for " + p.Arch)})
	}
	return s
}

func release(t *testing.T, version string) oci.Release {
	t.Helper()
	r, err := spec(t, version).Make()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// keys is a pair as cosign generate-key-pair writes it.
func keys(t *testing.T) (oci.Signer, oci.Verifier) {
	t.Helper()
	password := []byte("password")
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), func(bool) ([]byte, error) { return password, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oci.ParseKey(private, []byte("another")); err == nil || !strings.Contains(err.Error(), "COSIGN_PASSWORD") {
		t.Errorf("a key with the wrong password: %v", err)
	}
	signer, err := oci.ParseKey(private, password)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := oci.ParsePublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

// server is a registry on loopback that refuses what a test wants refused, and that can
// change what it returns.
type server struct {
	url    string
	mu     sync.Mutex
	refuse func(*http.Request) bool
	change func(*http.Request, []byte) []byte
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{}
	next := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		refuse, change := s.refuse, s.change
		s.mu.Unlock()
		if refuse != nil && refuse(r) {
			http.Error(w, `{"errors":[{"code":"DENIED","message":"quota exceeded"}]}`, http.StatusForbidden)
			return
		}
		if change == nil || r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		recorded := httptest.NewRecorder()
		next.ServeHTTP(recorded, r)
		maps.Copy(w.Header(), recorded.Header())
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(change(r, recorded.Body.Bytes()))
	}))
	t.Cleanup(h.Close)
	s.url = strings.TrimPrefix(h.URL, "http://")
	return s
}

func (s *server) set(refuse func(*http.Request) bool, change func(*http.Request, []byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse, s.change = refuse, change
}

func (s *server) repository() string { return s.url + "/spillway" }

func (s *server) image(tag string) string { return s.repository() + ":" + tag }

// tagged is whether a tag leads anywhere.
func (s *server) tagged(t *testing.T, tag string) bool {
	t.Helper()
	ref, err := name.ParseReference(s.image(tag))
	if err != nil {
		t.Fatal(err)
	}
	_, err = remote.Head(ref)
	return err == nil
}

// The same programs and the same commit make the same image and attachments.
func TestReproducible(t *testing.T) {
	one, two := release(t, "v0.1.0"), release(t, "v0.1.0")
	if a, b := digest(t, one.Index), digest(t, two.Index); a != b {
		t.Errorf("digests %s and %s", a, b)
	}
	for i := range one.Referrers {
		if a, b := digest(t, one.Referrers[i]), digest(t, two.Referrers[i]); a != b {
			t.Errorf("attachment %d: digests %s and %s", i, a, b)
		}
	}
	if a, b := digest(t, one.Index), digest(t, release(t, "v0.1.1").Index); a == b {
		t.Error("another version has the same digest")
	}
}

// What is pulled does not run as root, has the program and the licenses and nothing else, and
// says where it is from.
func TestPulled(t *testing.T) {
	registry := serve(t)
	signer, verifier := keys(t)
	made := release(t, "v0.1.0")
	if _, err := oci.Push(t.Context(), registry.repository(), []oci.Release{made}, signer); err != nil {
		t.Fatal(err)
	}
	verified, err := verifier.Verify(t.Context(), registry.image("v0.1.0"))
	if err != nil {
		t.Fatal(err)
	}
	if verified.DigestStr() != digest(t, made.Index) {
		t.Errorf("verified %s", verified)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := remote.Image(verified, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, img, arch)
		if _, err := verifier.Verify(t.Context(), verified.Context().Digest(digest(t, img)).String()); err != nil {
			t.Errorf("%s alone: %v", arch, err)
		}
		checkSBOM(t, verified.Context().Digest(digest(t, img)), verifier)
	}
	checkProvenance(t, verified)
}

func checkImage(t *testing.T, img v1.Image, arch string) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != arch || strings.Join(config.Config.Entrypoint, " ") != "/spillway" {
		t.Errorf("config %+v", config)
	}
	if config.Config.Labels["org.opencontainers.image.version"] != "v0.1.0" {
		t.Errorf("labels %v", config.Config.Labels)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Annotations["org.opencontainers.image.revision"] == "" {
		t.Errorf("annotations %v", manifest.Annotations)
	}
	content := mutate.Extract(img)
	defer func() { _ = content.Close() }()
	var names []string
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != 0 || h.Mode&0o022 != 0 {
			t.Errorf("%s is owned by %d with mode %o: the program could change it", h.Name, h.Uid, h.Mode)
		}
	}
	if got := strings.Join(names, " "); got != "spillway licenses licenses/THIRD_PARTY_LICENSES.txt" && got != "spillway licenses/ licenses/THIRD_PARTY_LICENSES.txt" {
		t.Errorf("files %s", got)
	}
}

// attached is the one document of a kind that refers to an image.
func attached(t *testing.T, to name.Digest, kind string) ([]byte, name.Digest) {
	t.Helper()
	index, err := remote.Referrers(to, remote.WithFilter("artifactType", kind))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("%d documents of kind %s refer to %s", len(manifest.Manifests), kind, to)
	}
	at := to.Context().Digest(manifest.Manifests[0].Digest.String())
	img, err := remote.Image(at)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return raw, at
}

func checkSBOM(t *testing.T, image name.Digest, verifier oci.Verifier) {
	t.Helper()
	raw, at := attached(t, image, string(oci.SBOMType))
	bom := &cdx.BOM{}
	if err := cdx.NewBOMDecoder(bytes.NewReader(raw), cdx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, c := range *bom.Components {
		found[c.Name] = c.PackageURL
	}
	if !strings.HasPrefix(found["golang.org/x/mod"], "pkg:golang/golang.org/x/mod@v") || found["std"] == "" {
		t.Errorf("components %v", found)
	}
	if _, err := verifier.Verify(t.Context(), at.String()); err != nil {
		t.Errorf("the list is not signed: %v", err)
	}
}

func checkProvenance(t *testing.T, image name.Digest) {
	t.Helper()
	raw, _ := attached(t, image, string(oci.ProvenanceType))
	var made struct {
		Subject       []struct{ Digest map[string]string }
		PredicateType string
		Predicate     struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	if err := json.Unmarshal(raw, &made); err != nil { //nolint:musttag // case does not matter to the decoder
		t.Fatal(err)
	}
	if made.PredicateType != "https://slsa.dev/provenance/v1" || "sha256:"+made.Subject[0].Digest["sha256"] != image.DigestStr() ||
		made.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != strings.Repeat("a", 40) {
		t.Errorf("provenance %s", raw)
	}
}

// A signature of another key, and none, are refused.
func TestWrongKey(t *testing.T) {
	registry := serve(t)
	signer, _ := keys(t)
	_, other := keys(t)
	if _, err := oci.Push(t.Context(), registry.repository(), []oci.Release{release(t, "v0.1.0")}, signer); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Verify(t.Context(), registry.image("v0.1.0")); err == nil || !strings.Contains(err.Error(), "the signature is not of this key") {
		t.Errorf("another key: %v", err)
	}
	for kind, raw := range map[string]string{"private": "x", "public": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"} {
		_, err := oci.ParsePublicKey([]byte(raw))
		if err == nil || !strings.Contains(err.Error(), "cosign generate-key-pair") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Whatever of an image a registry changes is noticed: each blob and each manifest in turn.
func TestTampered(t *testing.T) {
	registry := serve(t)
	signer, verifier := keys(t)
	if _, err := oci.Push(t.Context(), registry.repository(), []oci.Release{release(t, "v0.1.0")}, signer); err != nil {
		t.Fatal(err)
	}
	var paths []string
	registry.set(nil, func(r *http.Request, body []byte) []byte {
		paths = append(paths, r.URL.Path)
		return body
	})
	if _, err := verifier.Verify(t.Context(), registry.image("v0.1.0")); err != nil {
		t.Fatal(err)
	}
	read := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(paths))), func(path string) bool {
		// What matters of a signature is what it signs, and whether it is right.
		return !strings.Contains(path, "spillway") || strings.HasSuffix(path, ".sig")
	})
	if len(read) < 9 { // index, 2 manifests, 2 configs, 2 lists of licenses, a program, what is signed
		t.Errorf("read only %v", read)
	}
	for _, path := range read {
		registry.set(nil, func(r *http.Request, body []byte) []byte {
			if r.URL.Path == path {
				body = bytes.Clone(body)
				body[len(body)/2] ^= 1
			}
			return body
		})
		if _, err := verifier.Verify(t.Context(), registry.image("v0.1.0")); err == nil {
			t.Errorf("%s was changed, and the image is verified", path)
		}
	}
}

// Wherever a registry refuses, no tag of the release exists afterwards; and the same push
// succeeds once it does not.
func TestRefused(t *testing.T) {
	signer, verifier := keys(t)
	releases := []oci.Release{release(t, "v0.1.0"), release(t, "v0.1.0-fips")}
	for name, refused := range map[string]func(*http.Request) bool{
		"uploads": func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/blobs/uploads/") },
		"manifests": func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/sha256:")
		},
		"signatures": func(r *http.Request) bool { return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, ".sig") },
		"everything": func(*http.Request) bool { return true },
		"the last tag": func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/v0.1.0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := serve(t)
			registry.set(refused, nil)
			_, err := oci.Push(t.Context(), registry.repository(), releases, signer)
			if err == nil || !strings.Contains(err.Error(), "quota exceeded") && !strings.Contains(err.Error(), "403") {
				t.Errorf("the refusal is not in the error: %v", err)
			}
			registry.set(nil, nil)
			for _, r := range releases {
				if registry.tagged(t, r.Tag) {
					t.Errorf("tag %s exists", r.Tag)
				}
			}
			if _, err := oci.Push(t.Context(), registry.repository(), releases, signer); err != nil {
				t.Fatal(err)
			}
			for _, r := range releases {
				if _, err := verifier.Verify(t.Context(), registry.image(r.Tag)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Without a key, cosign signs all that is pushed, by digest, before any tag leads to it; if it cannot,
// no tag of the release exists.
func TestKeyless(t *testing.T) {
	registry := serve(t)
	dir := t.TempDir()
	cosign := filepath.Join(dir, "cosign")
	program := func(script string) {
		t.Helper()
		if err := os.WriteFile(cosign, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	releases := []oci.Release{release(t, "v0.1.0")}
	program(`echo "no identity" >&2; exit 1`)
	if _, err := oci.Push(t.Context(), registry.repository(), releases, oci.Keyless{Cosign: cosign}); err == nil || !strings.Contains(err.Error(), "no identity") {
		t.Errorf("it is signed by none: %v", err)
	}
	if registry.tagged(t, "v0.1.0") {
		t.Error("the tag exists")
	}
	program(`echo "$@" >> ` + filepath.Join(dir, "signed"))
	digests, err := oci.Push(t.Context(), registry.repository(), releases, oci.Keyless{Cosign: cosign})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := os.ReadFile(filepath.Join(dir, "signed"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(signed)), "\n")
	if want := "sign --yes " + digests[0].String(); !slices.Contains(lines, want) || len(lines) < 2 {
		t.Errorf("signed was %q, want %s, its platforms and what is attached", lines, want)
	}
	for _, line := range lines {
		if !strings.Contains(line, "@sha256:") {
			t.Errorf("it is not signed by digest: %s", line)
		}
	}
}

// A release is never replaced; the same may be pushed again.
func TestReplaced(t *testing.T) {
	registry := serve(t)
	signer, _ := keys(t)
	first := release(t, "v0.1.0")
	for range 2 {
		if _, err := oci.Push(t.Context(), registry.repository(), []oci.Release{first}, signer); err != nil {
			t.Fatal(err)
		}
	}
	other := spec(t, "v0.1.0")
	other.Source.Commit = strings.Repeat("b", 40)
	second, err := other.Make()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oci.Push(t.Context(), registry.repository(), []oci.Release{second}, signer); err == nil || !strings.Contains(err.Error(), "a release is never replaced") {
		t.Errorf("it was replaced: %v", err)
	}
}

// A layout is read as it was written, and refused when a byte of it has changed.
func TestLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "images")
	made := []oci.Release{release(t, "v0.1.0"), release(t, "v0.1.0-fips")}
	if err := oci.WriteLayout(dir, made); err != nil {
		t.Fatal(err)
	}
	read, err := oci.ReadLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range made {
		if read[i].Tag != made[i].Tag || digest(t, read[i].Index) != digest(t, made[i].Index) || len(read[i].Referrers) != 3 {
			t.Errorf("read %s with %d attachments", read[i].Tag, len(read[i].Referrers))
		}
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	if err != nil || len(blobs) == 0 {
		t.Fatal(err)
	}
	for _, blob := range blobs {
		raw, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Clone(raw)
		changed[len(raw)/2] ^= 1
		if err := errors.Join(os.Chmod(blob, 0o600), os.WriteFile(blob, changed, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := oci.ReadLayout(dir); err == nil {
			t.Errorf("blob %s was changed, and is read", filepath.Base(blob))
		}
		if err := os.WriteFile(blob, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := oci.ReadLayout(t.TempDir()); err == nil || !strings.Contains(err.Error(), "make release") {
		t.Errorf("an empty folder: %v", err)
	}
}
