package oci

import (
	"fmt"
	"maps"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What is attached to images: lists of what is in them, and how they were made.
const (
	SBOMType       types.MediaType = "application/vnd.cyclonedx+json"
	ProvenanceType types.MediaType = "application/vnd.in-toto+json"
)

// Release is an image with all that is attached to it, or a chart.
type Release struct {
	Tag       string
	Index     v1.ImageIndex
	Referrers []v1.Image
	// Chart is instead of an image, in a repository of its own.
	Chart      v1.Image
	Repository string
}

// root is what the tag leads to.
func (r *Release) root() interface {
	manifested
	remote.Taggable
} {
	if r.Chart != nil {
		return r.Chart
	}
	return r.Index
}

// Make makes the image, and what is attached to it: a list for each platform, and the
// provenance for all.
func (s Spec) Make() (Release, error) {
	index, err := s.Index()
	if err != nil {
		return Release{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return Release{}, fmt.Errorf("read the index: %w", err)
	}
	r := Release{Tag: s.Tag, Index: index}
	for i, p := range s.Programs {
		list, err := s.SBOM(p)
		if err != nil {
			return Release{}, err
		}
		if err := r.attach(manifest.Manifests[i], SBOMType, list, s.annotations()); err != nil {
			return Release{}, err
		}
	}
	subject, err := descriptor(index)
	if err != nil {
		return Release{}, err
	}
	made, err := s.Provenance(subject.Digest)
	if err != nil {
		return Release{}, err
	}
	return r, r.attach(subject, ProvenanceType, made, s.annotations())
}

// attach adds a document that refers to a manifest.
func (r *Release) attach(subject v1.Descriptor, kind types.MediaType, document []byte, annotations map[string]string) error {
	subject = v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), kind)
	img, err := mutate.AppendLayers(img, static.NewLayer(document, kind))
	if err != nil {
		return fmt.Errorf("attach %s: %w", kind, err)
	}
	notes := maps.Clone(annotations)
	if kind == ProvenanceType {
		notes["in-toto.io/predicate-type"] = predicateType
	}
	referrer, ok := mutate.Subject(mutate.Annotations(img, notes), subject).(v1.Image)
	if !ok {
		return fmt.Errorf("attach %s: not an image", kind)
	}
	r.Referrers = append(r.Referrers, referrer)
	return nil
}

// manifested is what has a manifest: an image or an index.
type manifested interface {
	Digest() (v1.Hash, error)
	MediaType() (types.MediaType, error)
	Size() (int64, error)
}

func descriptor(of manifested) (v1.Descriptor, error) {
	digest, err := of.Digest()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("digest: %w", err)
	}
	kind, err := of.MediaType()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("media type: %w", err)
	}
	size, err := of.Size()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("size: %w", err)
	}
	return v1.Descriptor{Digest: digest, MediaType: kind, Size: size}, nil
}
