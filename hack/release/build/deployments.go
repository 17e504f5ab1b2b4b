package build

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spillway-dev/spillway/hack/release/chart"
	"github.com/spillway-dev/spillway/hack/release/kustomize"
	"github.com/spillway-dev/spillway/hack/release/program"
)

// deployments are the ways to install without the program: one file of manifests, bases and
// overlays for kustomize, and the chart. All have the image by its digest, and all are what
// the program itself would install.
func (r *release) deployments(ctx context.Context, digest string) error {
	image := r.Repository + ":" + r.Source.Version + "@" + digest
	export := func(values string) ([]byte, error) {
		return r.runWith(ctx, values, "install", "--export", "--image="+image, "--values=-")
	}
	manifests, err := export("")
	if err != nil {
		return err
	}
	r.files["install.yaml"] = manifests
	made, err := kustomize.Files(export)
	if err != nil {
		return err
	}
	var files []program.File
	for _, name := range slices.Sorted(maps.Keys(made)) {
		files = append(files, program.File{Name: name, Content: made[name]})
	}
	if r.files["spillway_"+r.Source.Version+"_kustomize.tar.gz"], err = program.TarGz(files, r.Source.Date); err != nil {
		return fmt.Errorf("pack what kustomize reads: %w", err)
	}
	packed, err := chart.Package(r.Source, r.Repository, digest)
	if err != nil {
		return err
	}
	r.files[chart.PackageName(r.Source)] = packed
	return nil
}
