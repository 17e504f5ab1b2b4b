package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/shell"
)

// importer writes a module for what Flux applies to a cluster.
type importer struct {
	cluster command.Cluster
	labels  map[string]string
	release bool
}

func newImport(i *importer) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import KUSTOMIZATION", Short: "Write the Module that does what a Kustomization or HelmRelease of Flux does",
		Long: "Write the Module that does what a Kustomization of Flux does, or with --release a HelmRelease, from it and its source as they are on a cluster.\n" +
			"What has no place in a Module is said, and so are the commands that take over what runs without deleting anything.",
		Example: "  spillway fleet import shop -n flux-system --select env=prod > shop.yaml\n  spillway fleet import shop --release -n flux-system > shop.yaml",
		Args:    command.Exactly(1, "name one Kustomization or HelmRelease; kubectl get kustomizations,helmreleases -A lists them"),
		RunE:    func(cmd *cobra.Command, args []string) error { return i.run(cmd, args[0]) },
	}
	i.cluster.AddNamespacedFlags(cmd.Flags())
	cmd.Flags().StringToStringVar(&i.labels, "select", nil, "label of the clusters that the module is for, as KEY=VALUE; without one it is for no cluster")
	cmd.Flags().BoolVar(&i.release, "release", false, "import the HelmRelease of this name")
	return cmd
}

func (i *importer) run(cmd *cobra.Command, name string) error {
	c, namespace, err := i.cluster.Connect()
	if err != nil {
		return err
	}
	head := metav1.ObjectMeta{Namespace: namespace, Name: name}
	var of client.Object = &kustomizev1.Kustomization{ObjectMeta: head}
	if i.release {
		of = &helmv2.HelmRelease{ObjectMeta: head}
	}
	if err := act.Get(cmd.Context(), c, of); err != nil {
		return err
	}
	sync, notes, err := syncOf(cmd.Context(), c, of)
	if err != nil {
		return fmt.Errorf("%s: %w", act.Name(c, of), err)
	}
	for _, note := range notes {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "note: %s: %s\n", act.Name(c, of), note)
	}
	tell(cmd, act.Name(c, of), of)
	return command.Show(cmd.OutOrStdout(), command.OutputYAML, i.module(of, &sync), nil)
}

// syncOf is the sync of a Kustomization or HelmRelease, with its source on the cluster.
func syncOf(ctx context.Context, c client.Client, of client.Object) (sync fleetv1.Sync, notes []string, err error) {
	switch of := of.(type) {
	case *helmv2.HelmRelease:
		from, chart, err := chartOf(ctx, c, of)
		if err != nil {
			return sync, nil, err
		}
		source, err := sourceOn(ctx, c, from.Kind, from.Name, cmp.Or(from.Namespace, of.Namespace))
		if err != nil {
			return sync, nil, err
		}
		return fluxspec.SyncOfRelease(of, chart, source)
	case *kustomizev1.Kustomization:
		from := of.Spec.SourceRef
		source, err := sourceOn(ctx, c, from.Kind, from.Name, cmp.Or(from.Namespace, of.Namespace))
		if err != nil {
			return sync, nil, err
		}
		return fluxspec.SyncOf(of, source)
	default:
		return sync, nil, fmt.Errorf("%T is not of Flux", of)
	}
}

// chartOf is what a HelmRelease fetches from, and what is said about its chart, nil if nothing is.
func chartOf(ctx context.Context, c client.Client, r *helmv2.HelmRelease) (from helmv2.CrossNamespaceObjectReference, spec *sourcev1.HelmChartSpec, err error) {
	ref, template := r.Spec.ChartRef, r.Spec.Chart
	switch {
	case ref != nil && ref.Kind == sourcev1.HelmChartKind:
		chart := &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(ref.Namespace, r.Namespace), Name: ref.Name}}
		if err := act.Get(ctx, c, chart); err != nil {
			return from, nil, err
		}
		return helmv2.CrossNamespaceObjectReference{Kind: chart.Spec.SourceRef.Kind, Name: chart.Spec.SourceRef.Name, Namespace: chart.Namespace}, &chart.Spec, nil
	case ref != nil:
		return helmv2.CrossNamespaceObjectReference{Kind: ref.Kind, Name: ref.Name, Namespace: ref.Namespace}, nil, nil
	case template != nil:
		return template.Spec.SourceRef, fluxspec.ChartOf(&template.Spec), nil
	default:
		return from, nil, errors.New("spec.chart and spec.chartRef: neither is set")
	}
}

func sourceOn(ctx context.Context, c client.Client, kind, name, namespace string) (client.Object, error) {
	source := sourceOf(kind, metav1.ObjectMeta{Namespace: namespace, Name: name})
	if err := act.Get(ctx, c, source); err != nil {
		return nil, fmt.Errorf("the source: %w", err)
	}
	return source, nil
}

// sourceOf is a source of Flux, without its content.
func sourceOf(kind string, head metav1.ObjectMeta) client.Object {
	switch kind {
	case sourcev1.GitRepositoryKind:
		return &sourcev1.GitRepository{ObjectMeta: head}
	case sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{ObjectMeta: head}
	case sourcev1.HelmRepositoryKind:
		return &sourcev1.HelmRepository{ObjectMeta: head}
	case sourcev1.BucketKind:
		return &sourcev1.Bucket{ObjectMeta: head}
	default:
		return &sourcev1.ExternalArtifact{ObjectMeta: head} // which is refused with its kind
	}
}

// module is the manifest, with what a user writes alone.
func (i *importer) module(of client.Object, sync *fleetv1.Sync) map[string]any {
	spec := map[string]any{"strategy": fleetv1.Incremental, "template": map[string]any{"spec": map[string]any{"sync": sync}}}
	if len(i.labels) > 0 {
		spec["selector"] = map[string]any{"matchLabels": i.labels}
	}
	return map[string]any{
		"apiVersion": fleetv1.GroupVersion.String(), "kind": model.KindModule,
		"metadata": map[string]any{"name": of.GetName(), "namespace": of.GetNamespace()}, "spec": spec,
	}
}

// tell says how to take over what runs. Flux deletes nothing for what is suspended, or is to leave what it has
// applied; nor does it delete the HelmChart that it has made for what is suspended.
func tell(cmd *cobra.Command, name string, of client.Object) {
	patch, chart := `{"spec": {"suspend": true, "deletionPolicy": "Orphan"}}`, ""
	if r, ok := of.(*helmv2.HelmRelease); ok {
		patch = `{"spec": {"suspend": true}}`
		if r.Spec.Chart != nil {
			chart = "\n4. kubectl delete " + shell.Join("helmchart/"+r.GetHelmChartName(), "-n", r.Spec.Chart.GetNamespace(r.Namespace))
		}
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), `to take over what runs, on each cluster that the module selects:
1. kubectl patch %[1]s --type merge -p '%[3]s'
2. on the hub, apply the module, and wait until it is complete: spillway fleet status -n %[2]s
3. kubectl delete %[1]s%[4]s
`, shell.Join(name, "-n", of.GetNamespace()), shell.Quote(of.GetNamespace()), patch, chart)
}
