package fleet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

type registrar struct {
	hub    command.Cluster
	dryRun command.DryRun
	// to is how the user reaches the cluster, and server how the hub does, if that is another address.
	to     command.Cluster
	server string
	roles  []string
	labels map[string]string
	// abandon leaves what runs on a cluster that is unregistered.
	abandon bool

	name   string
	lookup func(string) (string, bool)
	out    io.Writer
	// client is for the hub, and there for the cluster.
	client, there client.WithWatch
}

func newRegister(r *registrar) *cobra.Command {
	cmd := r.command("register", "Register a cluster on the hub", "c1 --to-context c1 -n clusters --label region=eu", r.register)
	r.reaches(cmd)
	cmd.Flags().StringVar(&r.server, "to-server", "", "address at which the hub reaches the API server of the cluster (default: that of --to-context)")
	cmd.Flags().StringSliceVar(&r.roles, "cluster-role", nil, "another role on the cluster for the account of the hub, by the name of a ClusterRole; BootstrapModules need one that may do what they apply")
	cmd.Flags().StringToStringVar(&r.labels, "label", nil, "label of the cluster, which modules and stages select it by, as KEY=VALUE; repeat it for several")
	return cmd
}

func newRotate(r *registrar) *cobra.Command {
	cmd := r.command("rotate", "Give the hub a new token for a cluster, and delete the old one", "c1 --to-context c1 -n clusters", r.rotate)
	r.reaches(cmd)
	return cmd
}

func newUnregister(r *registrar) *cobra.Command {
	cmd := r.command("unregister", "Remove a cluster from the hub", "c1 -n clusters", r.unregister)
	cmd.Flags().BoolVar(&r.abandon, "abandon", false, "leave what modules run on the cluster, which is no longer updated; the cluster need not answer")
	return cmd
}

func (r *registrar) command(verb, short, example string, run func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " CLUSTER", Short: short, Example: "  spillway fleet " + verb + " " + example,
		Args: command.Exactly(1, "name one cluster; spillway fleet clusters lists those of a namespace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.connect(cmd, args[0]); err != nil {
				return err
			}
			return run(cmd.Context())
		},
	}
	r.hub.AddNamespacedFlags(cmd.Flags())
	r.dryRun.AddFlag(cmd.Flags())
	return cmd
}

func (r *registrar) reaches(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.to.Kubeconfig, "to-kubeconfig", "", "path of the kubeconfig for the cluster (default: as --kubeconfig)")
	cmd.Flags().StringVar(&r.to.Context, "to-context", "", "context for the cluster (default: its name)")
}

func (r *registrar) connect(cmd *cobra.Command, name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("%q cannot be the name of a cluster: %s", name, wrong[0])
	}
	if err := r.connectHub(cmd); err != nil {
		return err
	}
	r.name = name
	if cmd.Flags().Lookup("to-context") == nil {
		return nil
	}
	if r.to.Kubeconfig == "" {
		r.to.Kubeconfig = r.hub.Kubeconfig
	}
	if r.to.Context == "" && !cmd.Flags().Changed("to-kubeconfig") {
		r.to.Context = name
	}
	there, err := r.to.Client()
	if err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	r.there = r.dryRun.Client(there)
	return nil
}

func (r *registrar) connectHub(cmd *cobra.Command) error {
	c, namespace, err := r.hub.Connect()
	if err != nil {
		return err
	}
	r.hub.Namespace, r.client, r.out = namespace, r.dryRun.Client(c), cmd.OutOrStdout()
	return nil
}

// register makes an account for the hub on the cluster, and gives the hub its token. A token that
// works is kept, so that a second registration changes labels alone.
func (r *registrar) register(ctx context.Context) error {
	secret := r.secret()
	err := r.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Secret %s: %w", secret.Name, err)
	}
	if owner := metav1.GetControllerOf(secret); owner != nil {
		return fmt.Errorf("cluster %s is registered already, by %s %s, which has made Secret %s", r.name, owner.Kind, owner.Name, secret.Name)
	}
	for _, o := range r.account() {
		if err := r.ensure(ctx, r.there, "cluster "+r.name, o.object, o.set); err != nil {
			return err
		}
	}
	kubeconfig := secret.Data[cluster.KubeconfigKey]
	if was := serverOf(secret); was == "" || r.server != "" && r.server != was || r.prove(ctx, kubeconfig) != nil {
		if kubeconfig, err = r.kubeconfig(ctx); err != nil {
			return err
		}
	}
	return r.handOver(ctx, kubeconfig, func(s *corev1.Secret) {
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		maps.Copy(s.Labels, r.labels)
		s.Labels[vocabulary.Cluster.Native] = "true"
	})
}

// rotate makes another token, gives it to the hub, and only then deletes those before.
func (r *registrar) rotate(ctx context.Context) error {
	secret := r.secret()
	if err := act.Get(ctx, r.client, secret); err != nil {
		return err
	}
	r.server = serverOf(secret)
	before, err := r.tokens(ctx)
	if err != nil {
		return err
	}
	kubeconfig, err := r.kubeconfig(ctx)
	if err != nil {
		return err
	}
	if err := r.handOver(ctx, kubeconfig, func(*corev1.Secret) {}); err != nil {
		return err
	}
	for i := range before {
		if err := r.there.Delete(ctx, &before[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cluster %s: delete the old token %s: %w", r.name, before[i].Name, err)
		}
		r.say("cluster "+r.name, "secret/"+before[i].Name, "deleted")
	}
	return nil
}

// handOver writes a kubeconfig for the hub, to which the cluster has answered.
func (r *registrar) handOver(ctx context.Context, kubeconfig []byte, label func(*corev1.Secret)) error {
	s := r.secret()
	return r.ensure(ctx, r.client, "hub", s, func() {
		label(s)
		s.Data = map[string][]byte{cluster.KubeconfigKey: kubeconfig}
	})
}

// prove asks the cluster as the hub will.
func (r *registrar) prove(ctx context.Context, kubeconfig []byte) error {
	as, err := command.Dial(kubeconfig)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", r.name, err)
	}
	err = as.List(ctx, &fleetv1.AssemblageList{}, client.InNamespace(r.hub.Namespace), client.Limit(1))
	switch {
	case apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return fmt.Errorf("cluster %s does not know the kind Assemblage; install Spillway there first: spillway install --rings=assemblage %s", r.name, strings.Join(r.to.Words(), " "))
	case err != nil:
		return fmt.Errorf("cluster %s: list assemblages with the new token: %w", r.name, err)
	}
	return nil
}

// unregister lets the hub forget a cluster on which no module runs, or leaves there what runs.
func (r *registrar) unregister(ctx context.Context) error {
	secret := r.secret()
	if err := act.Get(ctx, r.client, secret); err != nil {
		return err
	}
	if vocabulary.Cluster.Get(secret.Labels) != "true" {
		return fmt.Errorf("secret/%s does not register a cluster: it has no label %s=true", secret.Name, vocabulary.Cluster.Native)
	}
	assemblages, modules, err := r.assigned(ctx)
	if err != nil {
		return err
	}
	if len(modules) > 0 && !r.abandon {
		return fmt.Errorf("cluster %s runs %s; change its labels so that no module selects it, and wait until that is removed: kubectl label secret %s -n %s KEY-; or leave what runs there: --abandon",
			r.name, strings.Join(modules, ", "), secret.Name, shell.Quote(r.hub.Namespace))
	}
	// The Secret goes first: while there is one, modules select the cluster, and would assign what is taken away.
	if err := r.client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %s: %w", secret.Name, err)
	}
	r.say("hub", "secret/"+secret.Name, "deleted")
	for _, a := range assemblages {
		if err := r.leave(ctx, a); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(r.out, "the account of the hub is left on the cluster: kubectl delete serviceaccount,role,rolebinding %s -n %s\n", account, shell.Quote(r.hub.Namespace))
	return err //nolint:wrapcheck // nothing can be added to a broken pipe
}

// leave deletes an assemblage, and leaves what it has applied.
func (r *registrar) leave(ctx context.Context, a client.Object) error {
	err := act.Apply(ctx, r.client, a, func() error {
		act.Annotate(a, vocabulary.AbandonCluster.Native, "true")
		return nil
	})
	if err == nil {
		err = r.client.Delete(ctx, a)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", act.Name(r.client, a), err)
	}
	r.say("hub", act.Name(r.client, a), "deleted, what runs is left")
	return nil
}

func (r *registrar) assigned(ctx context.Context) (all []client.Object, modules []string, err error) {
	name := cluster.SecretName(r.name)
	proxies, remotes := &fleetv1.ProxyAssemblageList{}, &fleetv1.RemoteAssemblageList{}
	for _, list := range []client.ObjectList{proxies, remotes} {
		if err := r.client.List(ctx, list, client.InNamespace(r.hub.Namespace)); err != nil && !apimeta.IsNoMatchError(err) {
			return nil, nil, fmt.Errorf("list what the cluster is assigned: %w", err)
		}
	}
	proxies.Items = slices.DeleteFunc(proxies.Items, func(p fleetv1.ProxyAssemblage) bool { return p.Spec.KubeconfigRef.Name != name })
	remotes.Items = slices.DeleteFunc(remotes.Items, func(p fleetv1.RemoteAssemblage) bool { return p.Spec.KubeconfigRef.Name != name })
	for i := range proxies.Items {
		all = append(all, &proxies.Items[i])
		for j := range proxies.Items[i].Spec.Assemblage.Syncs {
			modules = append(modules, "module "+proxies.Items[i].Spec.Assemblage.Syncs[j].Name)
		}
	}
	for i := range remotes.Items {
		all = append(all, &remotes.Items[i])
		for j := range remotes.Items[i].Spec.Syncs {
			modules = append(modules, "bootstrapmodule "+remotes.Items[i].Spec.Syncs[j].Name)
		}
	}
	return all, modules, nil
}

// ensure creates an object, or changes what it lacks of what is set.
func (r *registrar) ensure(ctx context.Context, c client.Client, where string, o client.Object, set func()) error {
	done, err := controllerutil.CreateOrUpdate(ctx, c, o, func() error {
		set()
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: write %s: %w", where, act.Name(c, o), err)
	}
	if done == controllerutil.OperationResultNone {
		done = "unchanged"
	}
	r.say(where, act.Name(c, o), string(done))
	return nil
}

func (r *registrar) say(where, what, done string) {
	_, _ = fmt.Fprintf(r.out, "%s: %s %s%s\n", where, what, done, r.dryRun.Note())
}

func (r *registrar) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.hub.Namespace, Name: cluster.SecretName(r.name)}}
}

func newFleetClusters(r *registrar) *cobra.Command {
	cmd := &cobra.Command{
		Use: "clusters", Short: "List the clusters that are registered on the hub", Example: "  spillway fleet clusters -n clusters", Args: command.None("name the namespace with -n"),
		RunE: func(cmd *cobra.Command, _ []string) error { return r.list(cmd) },
	}
	r.hub.AddNamespacedFlags(cmd.Flags())
	return cmd
}

func (r *registrar) list(cmd *cobra.Command) error {
	if err := r.connectHub(cmd); err != nil {
		return err
	}
	all, err := cluster.ListLive(cmd.Context(), r.client, r.hub.Namespace)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(r.out, "No clusters are registered in this namespace; to register one: spillway fleet register NAME --to-context CONTEXT -n %s\n", shell.Quote(r.hub.Namespace))
		return err //nolint:wrapcheck // nothing can be added to a broken pipe
	}
	slices.SortFunc(all, func(a, b cluster.Cluster) int { return strings.Compare(a.Name, b.Name) })
	f := display.NewFacts(r.out, display.StyleOf(r.out, r.lookup))
	f.Line("CLUSTER", "REGISTERED BY", "LABELS")
	for i := range all {
		f.Line(all[i].Name, all[i].Object.Kind, labelsOf(all[i].Labels))
	}
	f.Write()
	return nil
}

func labelsOf(labels map[string]string) string {
	others := maps.Clone(labels)
	delete(others, vocabulary.Cluster.Native)
	return klabels.FormatLabels(others)
}

// account is the name of the ServiceAccount of the hub on a cluster, and of its Role.
const account = "spillway-hub"

// tokenWithin is how long the cluster may take to write a token.
const tokenWithin = 30 * time.Second

type wanted struct {
	object client.Object
	set    func()
}

// account is what the hub needs on the cluster, and nothing else: the namespace of its
// assemblages, and an account that may write these there.
func (r *registrar) account() []wanted {
	head := metav1.ObjectMeta{Namespace: r.hub.Namespace, Name: account}
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.hub.Namespace, Name: account}}
	role, binding, none := &rbacv1.Role{ObjectMeta: head}, &rbacv1.RoleBinding{ObjectMeta: head}, func() {}
	all := []wanted{
		{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.hub.Namespace}}, none},
		{&corev1.ServiceAccount{ObjectMeta: head}, none},
		{role, func() {
			role.Rules = []rbacv1.PolicyRule{{
				APIGroups: []string{fleetv1.GroupVersion.Group}, Resources: []string{"assemblages"},
				Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
			}}
		}},
		{binding, func() {
			binding.Subjects, binding.RoleRef = subject, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}
		}},
	}
	for _, role := range r.roles {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account + "-" + r.hub.Namespace + "-" + role}}
		all = append(all, wanted{b, func() {
			b.Subjects, b.RoleRef = subject, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		}})
	}
	return all
}

// kubeconfig is one for the hub, with a token that was made for it, and to which the cluster has answered. Of a dry
// run there is no token, and it is not asked.
func (r *registrar) kubeconfig(ctx context.Context) ([]byte, error) {
	config, err := r.to.RESTConfig()
	if err != nil {
		return nil, err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("cluster %s: read the certificate of its authority: %w", r.name, err)
	}
	token, err := r.token(ctx)
	if err != nil {
		return nil, err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters[r.name] = &clientcmdapi.Cluster{
		Server: cmp.Or(r.server, config.Host), CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure,
	}
	k.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token}
	k.Contexts[r.name] = &clientcmdapi.Context{Cluster: r.name, AuthInfo: account, Namespace: r.hub.Namespace}
	k.CurrentContext = r.name
	raw, err := clientcmd.Write(*k)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	if r.dryRun.On() {
		return raw, nil
	}
	return raw, r.prove(ctx, raw)
}

// serverOf is the address in the kubeconfig that the hub has, empty if it has none that can be read.
func serverOf(secret *corev1.Secret) string {
	config, err := cluster.ClientConfig(secret.Data[cluster.KubeconfigKey])
	if err != nil {
		return ""
	}
	return config.Host
}

// token makes a Secret of which the cluster makes a token, and waits for it. Of a dry run there is none.
func (r *registrar) token(ctx context.Context) (string, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.hub.Namespace, GenerateName: account + "-", Annotations: map[string]string{corev1.ServiceAccountNameKey: account},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	if r.dryRun.On() {
		return "", nil
	}
	if err := r.there.Create(ctx, secret); err != nil {
		return "", fmt.Errorf("cluster %s: make a token: %w", r.name, err)
	}
	key := client.ObjectKeyFromObject(secret)
	err := wait.PollUntilContextTimeout(ctx, tokenWithin/100, tokenWithin, true, func(ctx context.Context) (bool, error) {
		err := r.there.Get(ctx, key, secret)
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err //nolint:wrapcheck // it is below
	})
	if err != nil {
		return "", fmt.Errorf("cluster %s: wait for the token in Secret %s: %w", r.name, key.Name, err)
	}
	r.say("cluster "+r.name, "secret/"+key.Name, "created")
	return string(secret.Data[corev1.ServiceAccountTokenKey]), nil
}

func (r *registrar) tokens(ctx context.Context) ([]corev1.Secret, error) {
	list := &corev1.SecretList{}
	if err := r.there.List(ctx, list, client.InNamespace(r.hub.Namespace), client.MatchingFields{"type": string(corev1.SecretTypeServiceAccountToken)}); err != nil {
		return nil, fmt.Errorf("cluster %s: list the tokens of the hub: %w", r.name, err)
	}
	var tokens []corev1.Secret
	for i := range list.Items {
		if list.Items[i].Annotations[corev1.ServiceAccountNameKey] == account {
			tokens = append(tokens, list.Items[i])
		}
	}
	return tokens, nil
}
