package origin_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/spillway-dev/spillway/internal/packages/origin"
)

// most is how much may be allocated for one package that is refused, in bytes: what is
// unpacked at most, and as much again.
const most = 128 << 20

// zeros are as many bytes without any memory.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// packed writes an archive of what write adds to it.
func packed(t *testing.T, write func(*tar.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := write(w); err != nil {
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

// one is an archive of one entry after a good package.
func one(h tar.Header, content io.Reader) func(*tar.Writer) error {
	return func(w *tar.Writer) error {
		if err := file(w, "operator.yaml", operator); err != nil {
			return err
		}
		h.Mode = 0o644
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := io.CopyN(w, content, h.Size)
		return err
	}
}

func file(w *tar.Writer, name, text string) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := io.WriteString(w, text)
	return err
}

// nested is YAML that is as deep as it is long.
var nested = strings.Repeat("[", 1<<20)

// hostile are archives that must be refused, with what is said of them.
var hostile = map[string]struct {
	write func(*tar.Writer) error
	want  string
}{
	"a path that leaves it": {one(tar.Header{Typeflag: tar.TypeReg, Name: "templates/../../../escaped", Size: 1}, zeros{}), "which leaves the package"},
	"an absolute path":      {one(tar.Header{Typeflag: tar.TypeReg, Name: "/tmp/escaped", Size: 1}, zeros{}), "which leaves the package"},
	"a link":                {one(tar.Header{Typeflag: tar.TypeSymlink, Name: "templates/a", Linkname: "/etc/passwd"}, zeros{}), "which is a link or a device"},
	"a hard link":           {one(tar.Header{Typeflag: tar.TypeLink, Name: "templates/a", Linkname: "../../escaped"}, zeros{}), "which is a link or a device"},
	"a pipe":                {one(tar.Header{Typeflag: tar.TypeFifo, Name: "templates/a"}, zeros{}), "which is a link or a device"},
	"a bomb":                {one(tar.Header{Typeflag: tar.TypeReg, Name: "templates/a", Size: 256 << 20}, zeros{}), "has more than 4 MiB of files"},
	"a bomb beside it":      {one(tar.Header{Typeflag: tar.TypeReg, Name: "docs/a", Size: 256 << 20}, zeros{}), "has more than "},
	"10,000 entries": {func(w *tar.Writer) error {
		for i := range 10_000 {
			if err := file(w, fmt.Sprintf("templates/%d.yaml", i), ""); err != nil {
				return err
			}
		}
		return nil
	}, "has more than 1000 files"},
	"10,000 directories": {func(w *tar.Writer) error {
		for i := range 10_000 {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprintf("templates/%d/", i), Mode: 0o755}); err != nil {
				return err
			}
		}
		return nil
	}, "entries"},
	"nested YAML": {func(w *tar.Writer) error { return file(w, "operator.yaml", operator+"url: "+nested) }, "/operator.yaml:4: invalid YAML: exceeded max depth"},
	"nested parameters": {func(w *tar.Writer) error {
		if err := file(w, "operator.yaml", operator); err != nil {
			return err
		}
		return file(w, "params.yaml", "parameters: "+nested)
	}, "params.yaml: "},
	"no YAML": {func(w *tar.Writer) error {
		if err := file(w, "operator.yaml", operator); err != nil {
			return err
		}
		return file(w, "params.yaml", "parameters: [{name: \x00")
	}, "params.yaml: "},
	"no archive at all": {nil, "is no archive of a package"},
}

// TestHostilePackages: from wherever a package comes, it is refused with what is wrong with it,
// in bounded memory, and nothing is written.
func TestHostilePackages(t *testing.T) {
	w := newWorld(t)
	kudo := w.origin
	kudo.OnlyPaths = true
	for name, test := range hostile {
		raw := []byte("operator.yaml")
		if test.write != nil {
			raw = packed(t, test.write)
		}
		write(t, "served/bad.tgz", string(raw))
		sum := sha256.Sum256(raw)
		write(t, "served/index.yaml", fmt.Sprintf("apiVersion: v1\nentries:\n  bad:\n  - {name: bad, operatorVersion: 0.1.0, digest: %s, urls: [%s/bad.tgz]}\n", hex.EncodeToString(sum[:]), w.http))
		pushRaw(t, w.image+":bad", raw)
		for from, o := range map[string]origin.Origin{"served/bad.tgz": w.origin, w.http + "/bad.tgz": w.origin, "bad": kudo, w.image + ":bad": w.origin} {
			before := tree(t)
			if err := allocates(t, name+" from "+from, func() error { _, err := o.Load(t.Context(), from); return err }); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s from %s: it says %v, want %q", name, from, err, test.want)
			}
			if after := tree(t); after != before {
				t.Errorf("%s from %s: the directory had\n%s\nand has\n%s", name, from, before, after)
			}
		}
	}
}

// TestHostileFolders: a folder may come from an archive or a repository of another user, and
// has links then.
func TestHostileFolders(t *testing.T) {
	w := newWorld(t)
	write(t, "secret", "password")
	for name, test := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"a link out of it":               {func(dir string) error { return os.Symlink("../../secret", dir+"/templates/a") }, "templates/a cannot be read: path escapes from parent; a link must lead to a file of the package"},
		"an absolute link":               {func(dir string) error { return os.Symlink("/etc/passwd", dir+"/templates/a") }, "templates/a cannot be read: "},
		"a link to nothing":              {func(dir string) error { return os.Symlink("none", dir+"/templates/a") }, "templates/a cannot be read: no such file or directory"},
		"a link to itself":               {func(dir string) error { return os.Symlink("a", dir+"/templates/a") }, "templates/a cannot be read: "},
		"a directory as a template":      {func(dir string) error { return os.Symlink(".", dir+"/templates/a") }, "templates/a is no file"},
		"a socket, which cannot be read": {func(dir string) error { return socket(t, dir+"/templates/a") }, "templates/a is no file"},
		"an operator.yaml that is a link": {func(dir string) error {
			return errorsOf(os.Remove(dir+"/operator.yaml"), os.Symlink("../secret", dir+"/operator.yaml"))
		}, "operator.yaml cannot be read: "},
		"a sparse file of 1 TiB": {func(dir string) error {
			return errorsOf(os.WriteFile(dir+"/templates/a", nil, 0o600), os.Truncate(dir+"/templates/a", 1<<40))
		}, "has more than 4 MiB of files"},
		"1,001 files": {func(dir string) error {
			for i := range 1_001 {
				if err := os.WriteFile(fmt.Sprintf("%s/templates/%d", dir, i), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}, "has more than 1000 files"},
		"5,001 directories": {func(dir string) error {
			for i := range 5_001 {
				if err := os.Mkdir(fmt.Sprintf("%s/templates/%d", dir, i), 0o700); err != nil {
					return err
				}
			}
			return nil
		}, "has more than 5000 entries"},
		"nested YAML": {func(dir string) error { return os.WriteFile(dir+"/params.yaml", []byte("parameters: "+nested), 0o600) }, "params.yaml: "},
	} {
		dir := strings.ReplaceAll(name, " ", "-")
		write(t, dir+"/operator.yaml", operator)
		write(t, dir+"/templates/good.yaml", "kind: A")
		if err := test.make(dir); err != nil {
			t.Fatal(err)
		}
		if err := allocates(t, name, func() error { _, err := w.origin.Load(t.Context(), "./"+dir); return err }); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: it says %v, want %q", name, err, test.want)
		}
	}
	write(t, "linked/operator.yaml", operator)
	write(t, "linked/templates/good.yaml", "kind: A")
	if err := os.Symlink("good.yaml", "linked/templates/same.yaml"); err != nil {
		t.Fatal(err)
	}
	p, err := w.origin.Load(t.Context(), "./linked")
	if err != nil || p.Templates["same.yaml"] != "kind: A" {
		t.Errorf("a link inside of the package: %v", err)
	}
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// socket makes a socket, which exists as long as the test.
func socket(t *testing.T, path string) error {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err == nil {
		t.Cleanup(func() { _ = l.Close() })
	}
	return err
}

// allocates fails if a function allocates more than it may.
func allocates(t *testing.T, name string, f func() error) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		t.Errorf("%s: %d MiB were allocated", name, got>>20)
	}
	return err
}

// tree are the files of the working directory, and their sizes.
func tree(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil {
			fmt.Fprintf(&all, "%s %d\n", path, info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// pushRaw pushes an archive as it is.
func pushRaw(t *testing.T, name string, raw []byte) {
	t.Helper()
	repo, err := remote.NewRepository(strings.TrimPrefix(name, "oci://"))
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	layer, err := oras.PushBytes(t.Context(), repo, origin.LayerType, raw)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, origin.ArtifactType, oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}})
	if err == nil {
		err = repo.Tag(t.Context(), manifest, repo.Reference.Reference)
	}
	if err != nil {
		t.Fatal(err)
	}
}
