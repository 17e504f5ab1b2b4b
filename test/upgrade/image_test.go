//go:build upgrade

package upgrade_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// released makes a release of what is in the work tree, pushes it to a registry, verifies it
// there, and returns the program that its image holds in a root of its own.
func released(t *testing.T, host string) version {
	t.Helper()
	dir := t.TempDir()
	tool, source, dist := filepath.Join(dir, "release"), filepath.Join(dir, "source"), filepath.Join(dir, "dist")
	compile(t, filepath.Join(root, "hack", "release"), tool, ".")
	sh(t, root, `mkdir "$1"; hack/release/testdata/commit.sh "$1"`, source)
	private, public := keys(t, dir)
	platform := "--platforms=linux/" + runtime.GOARCH
	sh(t, dir, `"$1" build --version=v0.1.0 --root="$2" --out="$3" "$4" "--image-$(echo "$4" | cut -c3-)" --fips=false --repository="$5/spillway"`, tool, source, dist, platform, host)
	sh(t, dir, `"$1" push --dist="$2" --to="$3/spillway" --charts-to="$3/charts/spillway" --key="$4"`, tool, dist, host, private)
	sh(t, dir, `"$1" verify "$2/spillway:v0.1.0" --key="$3"; "$1" verify "$2/charts/spillway:0.1.0" --key="$3"`, tool, host, public)
	unpacked := filepath.Join(dir, "root")
	unpack(t, filepath.Join(dist, "images"), unpacked)
	return version{name: "the image of this version", program: "/spillway", root: unpacked}
}

// keys writes a pair of keys without a password.
func keys(t *testing.T, dir string) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	one, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	two, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	private, public = filepath.Join(dir, "private"), filepath.Join(dir, "public")
	if err := errors.Join(
		os.WriteFile(private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: one}), 0o600),
		os.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: two}), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return private, public
}

// unpack writes all layers of the only image of a layout to an empty folder. It holds a
// program and the licenses, and nothing else.
func unpack(t *testing.T, layout, to string) {
	t.Helper()
	type descriptor struct {
		Digest string `json:"digest"`
	}
	blob := func(d descriptor) string {
		return filepath.Join(layout, "blobs", strings.Replace(d.Digest, ":", "/", 1))
	}
	var manifest struct {
		Manifests []descriptor `json:"manifests"`
		Layers    []descriptor `json:"layers"`
	}
	for file := filepath.Join(layout, "index.json"); len(manifest.Layers) == 0; {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &manifest); err != nil {
			t.Fatal(err)
		}
		file = blob(manifest.Manifests[0]) // first the image, then what is attached to it
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, layer := range manifest.Layers {
		sh(t, to, `tar --no-same-owner -xpzf "$1"`, blob(layer))
	}
	held, err := fs.Glob(os.DirFS(to), "*")
	if err != nil {
		t.Fatal(err)
	}
	within, err := fs.Glob(os.DirFS(to), "*/*")
	if err != nil {
		t.Fatal(err)
	}
	if held = append(held, within...); !slices.Equal(held, []string{"licenses", "spillway", "licenses/THIRD_PARTY_LICENSES.txt"}) {
		t.Errorf("the image holds %v", held)
	}
}

// alone is a command that runs a program in a root that holds nothing but what its image has
// and /proc, which every container has, as the user that the image names, where this process may.
func alone(root, program string, args ...string) *exec.Cmd {
	isolate, user := []string{"--mount"}, "--userspec=65532:65532"
	if os.Geteuid() != 0 {
		isolate, user = append(isolate, "--map-root-user"), "--userspec=0:0"
	}
	script := `mkdir -p "$1/proc"; mount --rbind /proc "$1/proc"; exec env -i "$(command -v chroot)" "$0" "$@"`
	cmd := exec.Command("unshare", append(append(isolate, "sh", "-ec", script, user, root, program), args...)...)
	cmd.Dir = "/"
	return cmd
}
