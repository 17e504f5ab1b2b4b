package build_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/elliptic"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	helm "helm.sh/helm/v4/pkg/registry"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/hack/release/build"
	"github.com/spillway-dev/spillway/hack/release/chart"
	"github.com/spillway-dev/spillway/hack/release/oci"
	"github.com/spillway-dev/spillway/hack/release/program"
	"github.com/spillway-dev/spillway/hack/release/source"
)

// clone copies this repository to another path, as one commit, which is the same wherever it is.
func clone(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	if out, err := exec.Command("../testdata/commit.sh", to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return to
}

// run builds a release for one platform, with an image for two.
func run(t *testing.T, root string) string {
	t.Helper()
	from, err := source.Read(t.Context(), root, "v0.1.0-test.1")
	if err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(root, "dist")
	var told bytes.Buffer
	err = build.Run(t.Context(), build.Options{
		Source: from, Out: dist, Repository: "ghcr.io/spillway-dev/spillway",
		Platforms: []program.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}, Images: program.Platforms()[:2], Log: &told,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, told.Bytes())
	}
	return dist
}

// A release that is made twice, at different paths, is equal byte for byte. What is pulled
// from a registry runs with nothing beside it.
func TestRelease(t *testing.T) {
	one, two := clone(t), clone(t) // before anything takes time in which files change
	dist, again := run(t, one), run(t, two)
	sums, other := read(t, dist, "checksums.txt"), read(t, again, "checksums.txt")
	if sums != other {
		t.Errorf("the checksums differ:\n%s\n%s", sums, other)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "checksums.txt")
	check.Dir = dist
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	checkPackages(t, dist, sums)
	checkDeployments(t, dist)
	checkArchive(t, dist)
	checkImage(t, dist)
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func checkPackages(t *testing.T, dist, sums string) {
	t.Helper()
	archive := "spillway_v0.1.0-test.1_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	var sum string
	for line := range strings.Lines(sums) {
		if strings.HasSuffix(line, archive+"\n") {
			sum, _, _ = strings.Cut(line, " ")
		}
	}
	for _, name := range []string{"krew.yaml", "spillway.rb"} {
		if text := read(t, dist, name); sum == "" || !strings.Contains(text, sum) || !strings.Contains(text, "/v0.1.0-test.1/"+archive) {
			t.Errorf("%s does not name %s with %q:\n%s", name, archive, sum, text)
		}
	}
}

// checkDeployments checks what installs without the program: all of it names the image of
// this release by its digest.
func checkDeployments(t *testing.T, dist string) {
	t.Helper()
	digest := imageDigest(t, dist)
	image := "image: ghcr.io/spillway-dev/spillway:v0.1.0-test.1@" + digest
	if !strings.Contains(read(t, dist, "install.yaml"), image) {
		t.Errorf("install.yaml does not install %s", image)
	}
	dir := t.TempDir()
	names := unpack(t, unzip(t, dist, "spillway_v0.1.0-test.1_kustomize.tar.gz"), dir)
	if !slices.Contains(names, "overlays/hub/kustomization.yaml") || !strings.Contains(read(t, dir, "base", "spillway.yaml"), image) {
		t.Errorf("kustomize: %v", names)
	}
	names = unpack(t, unzip(t, dist, "spillway-0.1.0-test.1.tgz"), dir)
	if !slices.Contains(names, "spillway/templates/NOTES.txt") || !strings.Contains(read(t, dir, "spillway", "values.yaml"), "digest: "+digest) {
		t.Errorf("chart: %v", names)
	}
	checkDescription(t, read(t, dir, "spillway", "Chart.yaml"), digest)
}

// checkDescription checks what Artifact Hub reads: the version, whether it is for production,
// the image, and the kinds.
func checkDescription(t *testing.T, text, digest string) {
	t.Helper()
	var said v2.Metadata
	if err := yaml.UnmarshalStrict([]byte(text), &said); err != nil {
		t.Fatal(err)
	}
	if err := said.Validate(); err != nil {
		t.Error(err)
	}
	if said.Version != "0.1.0-test.1" || said.AppVersion != "v0.1.0-test.1" || said.KubeVersion == "" || said.Annotations["artifacthub.io/prerelease"] != "true" {
		t.Errorf("Chart.yaml: %s", text)
	}
	var images, kinds []map[string]string
	if err := errors.Join(yaml.Unmarshal([]byte(said.Annotations["artifacthub.io/images"]), &images), yaml.Unmarshal([]byte(said.Annotations["artifacthub.io/crds"]), &kinds)); err != nil {
		t.Fatal(err)
	}
	if len(images) != 1 || images[0]["image"] != "ghcr.io/spillway-dev/spillway:v0.1.0-test.1@"+digest {
		t.Errorf("images: %v", images)
	}
	if !slices.ContainsFunc(kinds, func(k map[string]string) bool { return k["kind"] == "RolloutGroup" }) {
		t.Errorf("kinds: %v", kinds)
	}
	for _, k := range kinds {
		for _, key := range []string{"kind", "version", "name", "displayName", "description"} {
			if k[key] == "" {
				t.Errorf("a kind without %s: %v", key, k)
			}
		}
	}
}

func unzip(t *testing.T, parts ...string) io.Reader {
	t.Helper()
	unzipped, err := gzip.NewReader(strings.NewReader(read(t, parts...)))
	if err != nil {
		t.Fatal(err)
	}
	return unzipped
}

// checkArchive unpacks the archive for this machine, and runs what is in it.
func checkArchive(t *testing.T, dist string) {
	t.Helper()
	dir := t.TempDir()
	names := unpack(t, unzip(t, dist, "spillway_v0.1.0-test.1_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"), dir)
	for _, want := range []string{"spillway", "LICENSE", "THIRD_PARTY_LICENSES.txt", "man/spillway-status.1", "completions/spillway.bash", "completions/_spillway", "completions/spillway.fish"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in the archive: %v", want, names)
		}
	}
	out, err := exec.Command(filepath.Join(dir, "spillway"), "version", "-o", "json").CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"v0.1.0-test.1"`) || !strings.Contains(string(out), `"2026-11-22T10:00:00Z"`) {
		t.Errorf("%v: %s", err, out)
	}
	// Without --image it installs the image of this release, by digest.
	digest := imageDigest(t, dist)
	out, err = exec.Command(filepath.Join(dir, "spillway"), "install", "--export").CombinedOutput()
	if want := "image: ghcr.io/spillway-dev/spillway:v0.1.0-test.1@" + digest; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: it does not install %s", err, want)
	}
}

func imageDigest(t *testing.T, dist string) string {
	t.Helper()
	releases, err := oci.ReadLayout(filepath.Join(dist, build.Images))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := releases[0].Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// checkImage pushes the image, pulls it, and runs it in a root that holds nothing else.
func checkImage(t *testing.T, dist string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.SkipPassword)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := oci.ParseKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := oci.ParsePublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	releases, err := oci.ReadLayout(filepath.Join(dist, build.Images))
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	packed, err := chart.ReadPackage(dist, host+"/charts/spillway")
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := oci.Push(t.Context(), host+"/spillway", append(releases, packed), signer)
	if err != nil {
		t.Fatal(err)
	}
	checkChart(t, dist, host, verifier)
	if _, err := verifier.Verify(t.Context(), pushed[0].Context().Tag("v0.1.0-test.1").String()); err != nil {
		t.Error(err)
	}
	img, err := remote.Image(pushed[0], remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		t.Fatal(err)
	}
	content := mutate.Extract(img)
	defer func() { _ = content.Close() }()
	root := t.TempDir()
	names := unpack(t, content, root)
	if err := os.Chmod(root, 0o755); err != nil { // as the runtime makes it
		t.Fatal(err)
	}
	if len(names) != 2 {
		t.Errorf("the image holds %v", names)
	}
	out, err := alone(root, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "spillway v0.1.0-test.1 (") {
		t.Errorf("in an empty root: %v: %s", err, out)
	}
}

// checkChart pulls the chart as Helm does, and refuses one that was changed.
func checkChart(t *testing.T, dist, host string, verifier oci.Verifier) {
	t.Helper()
	const file = "spillway-0.1.0-test.1.tgz"
	if _, err := verifier.Verify(t.Context(), host+"/charts/spillway:0.1.0-test.1"); err != nil {
		t.Error(err)
	}
	client, err := helm.NewClient(helm.ClientOptPlainHTTP(), helm.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "none")))
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(host + "/charts/spillway:0.1.0-test.1")
	if err != nil {
		t.Fatal(err)
	}
	if packed := read(t, dist, file); string(pulled.Chart.Data) != packed || pulled.Chart.Meta.AppVersion != "v0.1.0-test.1" {
		t.Errorf("Helm pulls %d bytes of %d, of %+v", len(pulled.Chart.Data), len(packed), pulled.Chart.Meta)
	}
	changed := t.TempDir()
	for name, content := range map[string]string{"checksums.txt": read(t, dist, "checksums.txt"), file: read(t, dist, file) + "x"} {
		if err := os.WriteFile(filepath.Join(changed, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := chart.ReadPackage(changed, host+"/charts/spillway"); err == nil || !strings.Contains(err.Error(), "is not what was written") {
		t.Errorf("a chart that was changed: %v", err)
	}
	if _, err := chart.ReadPackage(t.TempDir(), host+"/charts/spillway"); err == nil || !strings.Contains(err.Error(), "make release writes one") {
		t.Errorf("no chart: %v", err)
	}
	if _, err := chart.ReadPackage(dist, host+"/charts"); err == nil || !strings.Contains(err.Error(), "last part") {
		t.Errorf("another name: %v", err)
	}
}

// alone runs the program of an image in its root, as a user without rights, where this process may.
func alone(root string, args ...string) *exec.Cmd {
	cmd := exec.Command("/spillway", args...)
	cmd.Dir, cmd.Env = "/", []string{"HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65532, Gid: 65532}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	return cmd
}

// unpack writes the files of a tar to a folder, and returns their names.
func unpack(t *testing.T, from io.Reader, dir string) []string {
	t.Helper()
	var names []string
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		to := filepath.Join(dir, filepath.Clean("/"+h.Name))
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, os.FileMode(h.Mode))); err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}
