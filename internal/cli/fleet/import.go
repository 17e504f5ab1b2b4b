package fleet

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/shell"
)

// importer writes a module for what Flux applies to a cluster.
type importer struct {
	cluster command.Cluster
	labels  map[string]string
}

func newImport(i *importer) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import KUSTOMIZATION", Short: "Write the Module that does what a Kustomization of Flux does",
		Long: "Write the Module that does what a Kustomization of Flux does, from the Kustomization and its source as they are on a cluster.\n" +
			"What has no place in a Module is said, and so are the commands that take over what runs without deleting anything.",
		Example: "  spillway fleet import shop -n flux-system --select env=prod > shop.yaml",
		Args:    command.Exactly(1, "name one Kustomization; kubectl get kustomizations -A lists them"),
		RunE:    func(cmd *cobra.Command, args []string) error { return i.run(cmd, args[0]) },
	}
	i.cluster.AddNamespacedFlags(cmd.Flags())
	cmd.Flags().StringToStringVar(&i.labels, "select", nil, "label of the clusters that the module is for, as KEY=VALUE; without one it is for no cluster")
	return cmd
}

func (i *importer) run(cmd *cobra.Command, name string) error {
	c, namespace, err := i.cluster.Connect()
	if err != nil {
		return err
	}
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := change.Get(cmd.Context(), c, k); err != nil {
		return err
	}
	source := sourceOf(k)
	if err := change.Get(cmd.Context(), c, source); err != nil {
		return fmt.Errorf("the source of kustomization/%s: %w", name, err)
	}
	sync, notes, err := fluxspec.SyncOf(k, source)
	if err != nil {
		return fmt.Errorf("kustomization/%s: %w", name, err)
	}
	for _, note := range notes {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "note: kustomization/%s: %s\n", name, note)
	}
	i.tell(cmd, k)
	return command.Show(cmd.OutOrStdout(), command.OutputYAML, i.module(k, &sync), nil)
}

// sourceOf is the source of a Kustomization, without its content.
func sourceOf(k *kustomizev1.Kustomization) client.Object {
	ref := k.Spec.SourceRef
	head := metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}
	if head.Namespace == "" {
		head.Namespace = k.Namespace
	}
	switch ref.Kind {
	case sourcev1.GitRepositoryKind:
		return &sourcev1.GitRepository{ObjectMeta: head}
	case sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{ObjectMeta: head}
	default:
		return &sourcev1.Bucket{ObjectMeta: head} // which is refused with its name
	}
}

// module is the manifest, with what a user writes alone.
func (i *importer) module(k *kustomizev1.Kustomization, sync *fleetv1.Sync) map[string]any {
	spec := map[string]any{"strategy": fleetv1.Incremental, "template": map[string]any{"spec": map[string]any{"sync": sync}}}
	if len(i.labels) > 0 {
		spec["selector"] = map[string]any{"matchLabels": i.labels}
	}
	return map[string]any{
		"apiVersion": fleetv1.GroupVersion.String(), "kind": model.KindModule,
		"metadata": map[string]any{"name": k.Name, "namespace": k.Namespace}, "spec": spec,
	}
}

// tell says how to take over what runs. Flux deletes nothing for a Kustomization that is suspended, or is to leave what it has applied.
func (i *importer) tell(cmd *cobra.Command, k *kustomizev1.Kustomization) {
	name := shell.Join("kustomization/"+k.Name, "-n", k.Namespace)
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), `to take over what runs, on each cluster that the module selects:
1. kubectl patch %[1]s --type merge -p '{"spec": {"suspend": true, "deletionPolicy": "Orphan"}}'
2. on the hub, apply the module, and wait until it is complete: spillway fleet status -n %[2]s
3. kubectl delete %[1]s
`, name, shell.Quote(k.Namespace))
}
