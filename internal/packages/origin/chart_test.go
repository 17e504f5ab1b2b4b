package origin_test

import (
	"bytes"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
)

// A chart is the same from a directory, an archive, an address and a registry, where it stands as
// Helm pushes it, beside its provenance.
func TestAChartIsTheSameWhereverItIs(t *testing.T) {
	w := newWorld(t)
	write(t, "shop/Chart.yaml", "{apiVersion: v2, name: shop, version: 1.0.0}")
	write(t, "shop/templates/a.yaml", "a: b")
	archive, err := w.origin.Chart(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "served/shop.tgz", string(archive))
	repo, err := remote.NewRepository(strings.TrimPrefix(w.image, "oci://"))
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	var layers []ocispec.Descriptor
	for kind, content := range map[string][]byte{"application/vnd.cncf.helm.chart.content.v1.tar+gzip": archive, "application/vnd.cncf.helm.chart.provenance.v1.prov": []byte("signed")} {
		layer, err := oras.PushBytes(t.Context(), repo, kind, content)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, layer)
	}
	manifest, err := oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, "application/vnd.cncf.helm.config.v1+json", oras.PackManifestOptions{Layers: layers})
	if err == nil {
		err = repo.Tag(t.Context(), manifest, "1.0.0")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"./shop/", "served/shop.tgz", w.http + "/shop.tgz", w.image + ":1.0.0"} {
		if got, err := w.origin.Chart(t.Context(), name); err != nil || !bytes.Equal(got, archive) {
			t.Errorf("%s is another chart: %v", name, err)
		}
	}
}
