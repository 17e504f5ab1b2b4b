package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func newUninstall(env command.Environment) *cobra.Command {
	o := &operation{env: env}
	cmd := &cobra.Command{
		Use: "uninstall instance/NAME", Short: "Delete an Instance, after its cleanup plan",
		Long: "Delete an Instance. If it has a plan cleanup, that runs first. Then all objects are deleted\n" +
			"that it has applied in its namespace. Volumes of StatefulSets stay, and so do the Operator\n" +
			"and the OperatorVersion, which other Instances may use.",
		Example: "  spillway package uninstall instance/zk -n shop --dry-run=client\n" +
			"  spillway package uninstall instance/zk -n shop --yes --wait",
		Args: command.Exactly(1, "name the Instance, as in: spillway package uninstall instance/zk"),
		RunE: o.connected(o.uninstall),
	}
	o.addFlags(cmd)
	o.addWait(cmd, "the Instance and all that it has applied are deleted")
	o.addYes(cmd)
	command.NameFlag(cmd, &o.output)
	o.dryRun.AddFlagWith(cmd.Flags(), `"client" or "server": delete nothing, and show what the plan cleanup would do and what would be deleted; with "server" the API server also checks it`)
	return cmd
}

func (o *operation) uninstall(ctx context.Context, args []string) error {
	i := o.instance(args[0])
	if err := act.Get(ctx, o.client, i); err != nil {
		return err
	}
	if err := o.confirm(fmt.Sprintf("Delete instance/%s in namespace %s, and its %d objects?", i.Name, i.Namespace, len(i.Status.Inventory))); err != nil {
		return err
	}
	if o.dryRun.On() {
		return o.previewUninstall(ctx, i)
	}
	uid := i.UID
	if err := o.delete(ctx, i); err != nil {
		return err
	}
	switch {
	case o.output != "":
		_, _ = fmt.Fprintf(o.out, "instance.%s/%s\n", v1beta1.GroupVersion.Group, i.Name)
	case o.env.KUDO:
		_, _ = fmt.Fprintf(o.out, "instance.%s/%s deleted\n", v1beta1.GroupVersion, i.Name)
	default:
		_, _ = fmt.Fprintf(o.out, "instance/%s deleted\n", i.Name)
	}
	if !o.wait {
		return nil
	}
	return o.waiter().Deleted(ctx, client.ObjectKeyFromObject(i), uid)
}

// delete deletes an Instance if it is the one that was read.
func (o *operation) delete(ctx context.Context, i *v1beta1.Instance) error {
	propagation := metav1.DeletePropagationBackground
	if o.wait {
		propagation = metav1.DeletePropagationForeground
	}
	uid := i.UID
	options := []client.DeleteOption{client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation)}
	if o.dryRun.On() {
		options = append(options, client.DryRunAll)
	}
	err := o.client.Delete(ctx, i.DeepCopy(), options...)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return fmt.Errorf("instance/%s was deleted by another client", i.Name)
	case err != nil:
		return fmt.Errorf("delete instance/%s: %w", i.Name, err)
	default:
		return nil
	}
}

// previewUninstall shows what the plan cleanup would do, and what would be deleted with
// the Instance.
func (o *operation) previewUninstall(ctx context.Context, i *v1beta1.Instance) error {
	if !o.dryRun.IsClient() {
		if err := o.delete(ctx, i); err != nil {
			return err
		}
	}
	i.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance")) // decoding removes it
	r := o.results()
	if err := o.previewCleanup(ctx, r, i); err != nil {
		return err
	}
	if err := r.add(i, "deleted"); err != nil {
		return err
	}
	for _, entry := range i.Status.Inventory {
		if err := o.previewOwned(ctx, r, i, entry); err != nil {
			return err
		}
	}
	return r.end()
}

// previewCleanup shows the plan cleanup, if the manager would run it.
func (o *operation) previewCleanup(ctx context.Context, r *results, i *v1beta1.Instance) error {
	version, err := o.versionAt(ctx, i.Namespace, &i.Spec)
	if err != nil || version == nil || !slices.Contains(i.Finalizers, vocabulary.CleanupFinalizer) {
		return err
	}
	if _, ok := version.Spec.Plans[v1beta1.CleanupPlan]; !ok {
		return nil
	}
	cleaned := i.DeepCopy()
	cleaned.Spec.Parameters = choice.CleanupParameters(i, &i.Status, version)
	return o.showPlan(ctx, r, cleaned, version, v1beta1.CleanupPlan)
}

// previewOwned shows what becomes of an object that the Instance has applied. Kubernetes
// deletes those that the Instance owns, unless the plan has before.
func (o *operation) previewOwned(ctx context.Context, r *results, i *v1beta1.Instance, entry v1beta1.InventoryEntry) error {
	live := kube.Metadata(schema.GroupVersionKind{Group: entry.Group, Version: entry.Version, Kind: entry.Kind})
	name := strings.ToLower(entry.Kind) + "/" + entry.Name
	err := o.client.Get(ctx, client.ObjectKey{Namespace: entry.Namespace, Name: entry.Name}, live)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return nil
	case apierrors.IsForbidden(err):
		_, _ = fmt.Fprintf(o.env.Err, "note: %s is not checked: you may not read it\n", name)
		return nil
	case err != nil:
		return fmt.Errorf("get %s: %w", name, err)
	case !slices.ContainsFunc(live.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == i.UID }):
		_, _ = fmt.Fprintf(o.env.Err, "note: %s stays, because instance/%s does not own it\n", name, i.Name)
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(live.GroupVersionKind())
	u.SetName(live.Name)
	if !r.isDeleted(u) {
		r.addRendered(u, "deleted with instance/"+i.Name, true)
	}
	return nil
}

func (o *operation) addYes(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
}
