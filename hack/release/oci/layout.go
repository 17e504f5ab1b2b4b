package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// tagAnnotation is where a layout keeps the tag of an image.
const tagAnnotation = "org.opencontainers.image.ref.name"

// WriteLayout writes images, and what is attached to them, to a folder that any tool of
// OCI reads.
func WriteLayout(dir string, releases []Release) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the former images: %w", err)
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write the images: %w", err)
	}
	for _, r := range releases {
		if err := path.AppendIndex(r.Index, layout.WithAnnotations(map[string]string{tagAnnotation: r.Tag})); err != nil {
			return fmt.Errorf("write image %s: %w", r.Tag, err)
		}
		for _, referrer := range r.Referrers {
			if err := path.AppendImage(referrer); err != nil {
				return fmt.Errorf("write what is attached to image %s: %w", r.Tag, err)
			}
		}
	}
	return nil
}

// ReadLayout reads images, and checks every byte of them: what was changed since it was
// written is not released.
func ReadLayout(dir string) ([]Release, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("read the images in %s: %w; make release writes them", dir, err)
	}
	if err := checkBlobs(filepath.Join(dir, "blobs", "sha256")); err != nil {
		return nil, err
	}
	all, err := path.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("read the images in %s: %w", dir, err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read the images in %s: %w", dir, err)
	}
	var releases []Release
	for _, d := range manifest.Manifests {
		if d.MediaType.IsIndex() {
			index, err := all.ImageIndex(d.Digest)
			if err != nil {
				return nil, fmt.Errorf("read image %s: %w", d.Digest, err)
			}
			releases = append(releases, Release{Tag: d.Annotations[tagAnnotation], Index: index})
			continue
		}
		if len(releases) == 0 {
			return nil, fmt.Errorf("read the images in %s: %s refers to no image", dir, d.Digest)
		}
		referrer, err := all.Image(d.Digest)
		if err != nil {
			return nil, fmt.Errorf("read what is attached to an image: %w", err)
		}
		last := &releases[len(releases)-1]
		last.Referrers = append(last.Referrers, referrer)
	}
	if len(releases) == 0 {
		return nil, fmt.Errorf("no image in %s; make release writes them", dir)
	}
	return releases, nil
}

// checkBlobs compares each file with its name, which is its digest. All that is pushed is
// found by digest from one file.
func checkBlobs(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the images: %w", err)
	}
	for _, entry := range entries {
		file, err := os.Open(filepath.Join(dir, entry.Name())) //nolint:gosec // of the folder that was named
		if err != nil {
			return fmt.Errorf("read the images: %w", err)
		}
		got, _, err := v1.SHA256(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("read the images: %w", err)
		}
		if got.Hex != entry.Name() {
			return fmt.Errorf("%s is not what was written: it has digest %s; make the release again", file.Name(), got)
		}
	}
	return nil
}
