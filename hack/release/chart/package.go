// Package chart packs the chart of a release, and makes of it what a registry holds.
package chart

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/spillway-dev/spillway/hack/release/oci"
	"github.com/spillway-dev/spillway/hack/release/packaging"
	"github.com/spillway-dev/spillway/hack/release/program"
	"github.com/spillway-dev/spillway/hack/release/source"
)

// name is that of the chart.
const name = "spillway"

// PackageName is the name of the file, as Helm calls it.
func PackageName(s source.Source) string { return name + "-" + s.Plain() + ".tgz" }

// Package packs the chart with the version of a release, which installs the image of that
// release by its digest. Packed twice, it is equal byte for byte, which helm package does not
// promise.
func Package(s source.Source, repository, digest string) ([]byte, error) {
	root := filepath.Join(s.Root, "charts", name)
	var files []program.File
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		inside, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("path of %s: %w", path, err)
		}
		switch filepath.ToSlash(inside) {
		case "Chart.yaml":
			content, err = describe(content, s, repository+":"+s.Version+"@"+digest)
		case "values.yaml":
			content, err = stamp(content, repository, digest)
		}
		if err != nil {
			return fmt.Errorf("charts/%s/%s: %w", name, inside, err)
		}
		files = append(files, program.File{Name: name + "/" + filepath.ToSlash(inside), Content: content})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pack the chart: %w", err)
	}
	return program.TarGz(files, s.Date)
}

// stamp writes the image into the values.
func stamp(content []byte, repository, digest string) ([]byte, error) {
	for line, stamped := range map[string]string{
		"\n  digest: \"\"\n":                              "\n  digest: " + digest + "\n",
		"\n  repository: ghcr.io/spillway-dev/spillway\n": "\n  repository: " + repository + "\n",
	} {
		if bytes.Count(content, []byte(line)) != 1 {
			return nil, fmt.Errorf("it must have the line %q once", strings.TrimSpace(line))
		}
		content = bytes.Replace(content, []byte(line), []byte(stamped), 1)
	}
	return content, nil
}

// ReadPackage reads the chart of a release from the folder that the release was written to.
func ReadPackage(dist, repository string) (oci.Release, error) {
	if !strings.HasSuffix(repository, "/"+name) {
		return oci.Release{}, fmt.Errorf("repository %s: Helm looks for the chart in one whose last part is %s", repository, name)
	}
	found, err := filepath.Glob(filepath.Join(dist, name+"-*.tgz"))
	if err != nil || len(found) != 1 {
		return oci.Release{}, fmt.Errorf("there are %d charts in %s; make release writes one", len(found), dist)
	}
	packed, err := os.ReadFile(found[0])
	if err != nil {
		return oci.Release{}, fmt.Errorf("read the chart: %w", err)
	}
	if err := checkSum(dist, filepath.Base(found[0]), packed); err != nil {
		return oci.Release{}, err
	}
	chart, err := loader.LoadArchive(bytes.NewReader(packed))
	if err != nil {
		return oci.Release{}, fmt.Errorf("read the chart: %w", err)
	}
	made, err := image(packed, chart.Metadata)
	if err != nil {
		return oci.Release{}, err
	}
	// A tag has no plus. A version of ours has none.
	return oci.Release{Tag: chart.Metadata.Version, Chart: made, Repository: repository}, nil
}

// checkSum is an error unless the chart is the one that was written with the release.
func checkSum(dist, file string, content []byte) error {
	sums, err := os.ReadFile(filepath.Join(dist, "checksums.txt")) //nolint:gosec // the user names the folder
	if err != nil {
		return fmt.Errorf("read the checksums: %w", err)
	}
	if line := packaging.Sum(content) + "  " + file + "\n"; !strings.Contains("\n"+string(sums), "\n"+line) {
		return fmt.Errorf("%s is not what was written: checksums.txt has another checksum; make the release again", file)
	}
	return nil
}
