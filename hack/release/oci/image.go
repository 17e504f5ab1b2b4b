// Package oci makes images and what is attached to them, and pushes, signs and verifies
// them. An image is a function of its programs and its commit: made again it has the same
// digest.
package oci

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/spillway-dev/spillway/hack/release/program"
	"github.com/spillway-dev/spillway/hack/release/source"
)

// User is who the program runs as: a number, so that a cluster sees that it is not root.
const User = "65532:65532"

// Program is one that goes into an image.
type Program struct {
	Platform program.Platform
	Content  []byte
	Licenses []byte
}

// Spec is an image to be made.
type Spec struct {
	Source source.Source
	// Tag is how it is called: the version, and what is different about a variant.
	Tag string
	// Repository is where it will be, without a tag: its name in what is attached to it.
	Repository string
	Programs   []Program
	FIPS       bool
}

// annotations say what the image is, where its source is, and how to read about it.
func (s Spec) annotations() map[string]string {
	const home = "https://github.com/spillway-dev/spillway"
	return map[string]string{
		"org.opencontainers.image.title":         "spillway",
		"org.opencontainers.image.description":   "Controlled releases for Kubernetes",
		"org.opencontainers.image.url":           home,
		"org.opencontainers.image.source":        home,
		"org.opencontainers.image.documentation": home + "/tree/" + s.Source.Version + "/docs",
		"org.opencontainers.image.vendor":        "The Spillway authors",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.version":       s.Tag,
		"org.opencontainers.image.revision":      s.Source.Commit,
		"org.opencontainers.image.created":       s.Source.Date.UTC().Format(time.RFC3339),
	}
}

// Index is the image for all platforms.
func (s Spec) Index() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range s.Programs {
		img, err := s.image(p)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", p.Platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: p.Platform.OS, Architecture: p.Platform.Arch},
		}})
	}
	annotated, ok := mutate.Annotations(index, s.annotations()).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotate %s: not an index", s.Tag)
	}
	return annotated, nil
}

func (s Spec) image(p Program) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var err error
	for _, part := range []struct {
		comment string
		file    program.File
	}{
		{"the licenses of what is linked in", program.File{Name: "licenses/THIRD_PARTY_LICENSES.txt", Content: p.Licenses}},
		{"the program, which needs no other file", program.File{Name: "spillway", Content: p.Content, Program: true}},
	} {
		if img, err = s.addLayer(img, part.comment, part.file); err != nil {
			return nil, err
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read its config: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = p.Platform.OS, p.Platform.Arch, v1.Time{Time: s.Source.Date.UTC()}
	file.Config = v1.Config{User: User, Entrypoint: []string{"/spillway"}, WorkingDir: "/", Labels: maps.Clone(s.annotations())}
	if img, err = mutate.ConfigFile(img, file); err != nil {
		return nil, fmt.Errorf("write its config: %w", err)
	}
	annotated, ok := mutate.Annotations(img, s.annotations()).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("annotate %s: not an image", s.Tag)
	}
	return annotated, nil
}

func (s Spec) addLayer(img v1.Image, comment string, file program.File) (v1.Image, error) {
	raw, err := program.Tar([]program.File{file}, s.Source.Date)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching, tarball.WithCompressionLevel(gzip.BestCompression))
	if err != nil {
		return nil, fmt.Errorf("layer with %s: %w", file.Name, err)
	}
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{
		Created: v1.Time{Time: s.Source.Date.UTC()}, CreatedBy: "hack/release", Comment: comment,
	}})
	if err != nil {
		return nil, fmt.Errorf("add %s: %w", file.Name, err)
	}
	return img, nil
}
