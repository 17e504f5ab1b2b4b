package lifecycle

import (
	"fmt"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func newPermissions(env command.Environment) *cobra.Command {
	var (
		given settings
		from  command.Packages
	)
	cmd := &cobra.Command{
		Use: "permissions PACKAGE", Short: "Print the Role that the manager needs for a package",
		Long: "Print what the manager needs to run the plans of a package, as its templates say: a Role for\n" +
			"namespaced kinds, to be bound to ServiceAccount spillway, and for other kinds a ClusterRole\n" +
			"that is aggregated. Templates are rendered with the defaults and with the parameters that are\n" +
			"given: what only other parameters render is not among them. No cluster is needed.",
		Example: "  spillway package permissions ./zookeeper | kubectl apply -n shop -f -",
		Args:    command.Exactly(1, "name a package, as in: spillway package permissions ./zookeeper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := from.Load(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			parameters, err := given.given()
			if err != nil {
				return err
			}
			namespaced, cluster, err := p.Permissions(parameters)
			if err != nil {
				return fmt.Errorf("%s: %w; give the parameters that it needs with -p", args[0], err)
			}
			r := &results{out: cmd.OutOrStdout(), output: command.OutputYAML}
			for _, role := range roles("spillway-package-"+p.Operator.Name, namespaced, cluster) {
				if err := r.add(role, ""); err != nil {
					return err
				}
			}
			return r.end()
		},
	}
	given.addFlags(cmd)
	from.AddFlags(cmd.Flags())
	return cmd
}

// roles are those with the rules, none without.
func roles(name string, namespaced, cluster []rbacv1.PolicyRule) []client.Object {
	var all []client.Object
	if len(namespaced) > 0 {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: namespaced}
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
		all = append(all, role)
	}
	if len(cluster) > 0 {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{vocabulary.PackagePermissions: "true"}}, Rules: cluster}
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		all = append(all, role)
	}
	return all
}
