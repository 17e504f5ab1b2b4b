package origin

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/spillway-dev/spillway/internal/packages/repository"
)

// Chart reads the archive of a Helm chart: from a registry (oci://), an address, a file, or a
// directory, of which the archive is the same to the byte for the same files.
func (o *Origin) Chart(ctx context.Context, name string) ([]byte, error) {
	if strings.HasPrefix(name, ociScheme) {
		archive, _, err := o.pull(ctx, name)
		return archive, err
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return repository.NewClient().Get(ctx, name)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--from-chart: %w; name a directory, an archive (.tgz), a URL or oci://REGISTRY/NAME:VERSION", err)
	case info.IsDir():
		return packed(name)
	case info.Size() > repository.MostDownload:
		return nil, fmt.Errorf("%s has more than %d MiB", name, repository.MostDownload>>20)
	}
	archive, err := os.ReadFile(name) //nolint:gosec // the user names what is read
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	return archive, nil
}

// packed is the archive of the chart in a directory, without what its .helmignore names.
func packed(dir string) ([]byte, error) {
	c, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s is no chart: %w", dir, err)
	}
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	slices.SortFunc(c.Raw, func(a, b *common.File) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range c.Raw {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: c.Name() + "/" + f.Name, Mode: 0o644, Size: int64(len(f.Data)), Format: tar.FormatPAX}
		if err := files.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
		if _, err := files.Write(f.Data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	err = errors.Join(files.Close(), zipped.Close())
	return archive.Bytes(), err
}
