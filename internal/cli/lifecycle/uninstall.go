package lifecycle

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/cli/command"
)

func newUninstall(env command.Environment) *cobra.Command {
	o := &operation{env: env}
	cmd := &cobra.Command{
		Use: "uninstall instance/NAME", Short: "Delete an Instance, after its cleanup plan",
		Long: "Delete an Instance. If it has a plan cleanup, that runs first. Then all objects are deleted\n" +
			"that it has applied in its namespace. Volumes of StatefulSets stay, and so do the Operator\n" +
			"and the OperatorVersion, which other Instances may use.",
		Example: "  spillway package uninstall instance/zk -n shop --yes --wait",
		Args:    command.Exactly(1, "name the Instance, as in: spillway package uninstall instance/zk"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.connect(cmd); err != nil {
				return err
			}
			return o.uninstall(cmd.Context(), args[0])
		},
	}
	o.addFlags(cmd)
	o.addWait(cmd, "the Instance and all that it has applied are deleted")
	o.addYes(cmd)
	return cmd
}

func (o *operation) uninstall(ctx context.Context, arg string) error {
	i := &v1beta1.Instance{}
	i.Name, i.Namespace = o.named(arg).Name, o.namespace
	if err := change.Get(ctx, o.client, i); err != nil {
		return err
	}
	if err := o.confirm(fmt.Sprintf("Delete instance/%s in namespace %s, and its %d objects?", i.Name, i.Namespace, len(i.Status.Inventory))); err != nil {
		return err
	}
	propagation := metav1.DeletePropagationBackground
	if o.wait {
		propagation = metav1.DeletePropagationForeground
	}
	uid := i.UID
	err := o.client.Delete(ctx, i, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return fmt.Errorf("instance/%s was deleted by another client", i.Name)
	case err != nil:
		return fmt.Errorf("delete instance/%s: %w", i.Name, err)
	}
	_, _ = fmt.Fprintf(o.out, "instance/%s deleted\n", i.Name)
	if !o.wait {
		return nil
	}
	return o.waiter().Deleted(ctx, client.ObjectKeyFromObject(i), uid)
}

func (o *operation) addYes(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
}
