package lifecycle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func newPermissions(env command.Environment) *cobra.Command {
	var (
		given settings
		from  command.Packages
		to    grantee
	)
	cmd := &cobra.Command{
		Use: "permissions PACKAGE", Short: "Print the Role that plans of a package need",
		Long: "Print what plans of a package need, as its templates say. Plans act as the manager: a Role\n" +
			"for namespaced kinds, to be bound to ServiceAccount spillway, and for other kinds a ClusterRole\n" +
			"that is aggregated. With --service-account they act as that account: the roles and their\n" +
			"bindings, and one that lets the manager act as it. Templates are rendered with the defaults\n" +
			"and with the parameters that are given: what only other parameters render is not among them.\n" +
			"No cluster is needed.",
		Example: "  spillway package permissions ./zookeeper | kubectl apply -n shop -f -\n" +
			"  spillway package permissions ./zookeeper -n shop --service-account=zk",
		Args: command.Exactly(1, "name a package, as in: spillway package permissions ./zookeeper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := to.check(); err != nil {
				return err
			}
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
			all := roles("spillway-package-"+p.Operator.Name, namespaced, cluster)
			if to.account != "" {
				all = to.roles("spillway-package-"+p.Operator.Name, append(namespaced, ofChildren(p)...), cluster)
			}
			for _, role := range all {
				if err := r.add(role, ""); err != nil {
					return err
				}
			}
			return r.end()
		},
	}
	given.addFlags(cmd)
	from.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&to.account, "service-account", "", "name of the ServiceAccount as which plans act, by spec.serviceAccountName of the Instance (default: the manager)")
	cmd.Flags().StringVarP(&to.namespace, "namespace", "n", "", "namespace of the Instance and of its ServiceAccount")
	cmd.Flags().StringVar(&to.manager, "manager-namespace", manifests.DefaultNamespace, "namespace that the manager runs in")
	cmd.Flags().StringVar(&to.managerAccount, "manager-service-account", "spillway", "name of the manager's ServiceAccount, which is that of its Deployment")
	return cmd
}

// grantee is the account as which plans act, and where the manager is, which acts as it.
type grantee struct{ account, namespace, manager, managerAccount string }

func (g *grantee) check() error {
	switch {
	case g.account != "" && g.namespace == "":
		return errors.New("--service-account: name its namespace, too, as in: -n shop")
	case g.account == "" && g.namespace != "":
		return errors.New("--namespace: a Role for the manager is of any namespace; leave it out, or name an account with --service-account")
	}
	return errors.Join(command.CheckName("service-account", g.account), command.CheckName("manager-service-account", g.managerAccount), command.CheckNamespaces("manager-namespace", g.manager))
}

// roles are those with the rules, bound to the account, and the one by which the manager acts as it.
func (g *grantee) roles(name string, namespaced, cluster []rbacv1.PolicyRule) []client.Object {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: g.namespace, Name: g.account}
	all := g.bound(name, namespaced, account)
	if len(cluster) > 0 {
		meta := metav1.ObjectMeta{Name: name + "-" + g.namespace + "-" + g.account} // not that of the manager, which is aggregated
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: cluster}
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{account}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		}
		binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"))
		all = append(all, role, binding)
	}
	act := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{g.account}, Verbs: []string{"impersonate"}}
	return append(all, g.bound("act-as-"+g.account, []rbacv1.PolicyRule{act}, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: g.manager, Name: g.managerAccount})...)
}

// bound are a Role and its binding, none without rules.
func (g *grantee) bound(name string, rules []rbacv1.PolicyRule, to rbacv1.Subject) []client.Object {
	if len(rules) == 0 {
		return nil
	}
	meta := metav1.ObjectMeta{Namespace: g.namespace, Name: name}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{to}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	return []client.Object{role, binding}
}

// ofChildren are what an account needs to apply the Instances of other packages, which the manager
// may anyway.
func ofChildren(p *packages.Package) []rbacv1.PolicyRule {
	if !slices.ContainsFunc(p.Operator.Tasks, func(t v1beta1.Task) bool { return t.Kind == v1beta1.KudoOperatorTask }) {
		return nil
	}
	group := []string{v1beta1.GroupVersion.Group}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"instances"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: group, Resources: []string{"operatorversions"}, Verbs: []string{"get"}},
	}
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
