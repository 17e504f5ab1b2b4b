package chart

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/registry"
)

// artifact is a chart as Helm keeps it in a registry: what Chart.yaml says, and the package.
type artifact struct {
	config, manifest []byte
	chart            v1.Layer
}

// image makes an artifact of a package.
func image(packed []byte, metadata *v2.Metadata) (v1.Image, error) {
	config, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("describe the chart: %w", err)
	}
	a := artifact{config: config, chart: static.NewLayer(packed, registry.ChartLayerMediaType)}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: map[string]string{ //nolint:mnd // of OCI
		"org.opencontainers.image.title":       metadata.Name,
		"org.opencontainers.image.version":     metadata.Version,
		"org.opencontainers.image.description": metadata.Description,
		"org.opencontainers.image.url":         metadata.Home,
		"org.opencontainers.image.source":      metadata.Home,
	}}
	said, err := partial.Descriptor(static.NewLayer(config, registry.ConfigMediaType))
	if err != nil {
		return nil, fmt.Errorf("describe the chart: %w", err)
	}
	layer, err := partial.Descriptor(a.chart)
	if err != nil {
		return nil, fmt.Errorf("describe the chart: %w", err)
	}
	manifest.Config, manifest.Layers = *said, []v1.Descriptor{*layer}
	if a.manifest, err = json.Marshal(manifest); err != nil {
		return nil, fmt.Errorf("describe the chart: %w", err)
	}
	img, err := partial.CompressedToImage(a)
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	return img, nil
}

// RawConfigFile implements [partial.CompressedImageCore], as all that follows.
func (a artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// MediaType is that of a manifest.
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest is the manifest.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// LayerByDigest is the package; there is no other.
func (a artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if own, err := a.chart.Digest(); err != nil || own != digest {
		return nil, fmt.Errorf("the chart has no layer %s", digest)
	}
	return a.chart, nil
}
