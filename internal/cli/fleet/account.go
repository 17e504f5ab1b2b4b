package fleet

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
)

// account is the name of the ServiceAccount of the hub on a cluster, and of its Role.
const account = "spillway-hub"

// tokenWithin is how long the cluster may take to write a token.
const tokenWithin = 30 * time.Second

// wanted is an object that is to exist, and what of it.
type wanted struct {
	object client.Object
	set    func(client.Object)
}

// account is what the hub needs on the cluster, and nothing else: the namespace of its
// assemblages, and an account that may write these there.
func (r *registrar) account() []wanted {
	head := metav1.ObjectMeta{Namespace: r.hub.Namespace, Name: account}
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.hub.Namespace, Name: account}}
	none := func(client.Object) {}
	all := []wanted{
		{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.hub.Namespace}}, none},
		{&corev1.ServiceAccount{ObjectMeta: head}, none},
		{&rbacv1.Role{ObjectMeta: head}, func(o client.Object) {
			if role, ok := o.(*rbacv1.Role); ok {
				role.Rules = []rbacv1.PolicyRule{{
					APIGroups: []string{fleetv1.GroupVersion.Group}, Resources: []string{"assemblages"},
					Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
				}}
			}
		}},
		{&rbacv1.RoleBinding{ObjectMeta: head}, func(o client.Object) {
			if b, ok := o.(*rbacv1.RoleBinding); ok {
				b.Subjects, b.RoleRef = subject, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}
			}
		}},
	}
	for _, role := range r.roles {
		name := metav1.ObjectMeta{Name: account + "-" + r.hub.Namespace + "-" + role}
		all = append(all, wanted{&rbacv1.ClusterRoleBinding{ObjectMeta: name}, func(o client.Object) {
			if b, ok := o.(*rbacv1.ClusterRoleBinding); ok {
				b.Subjects, b.RoleRef = subject, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
			}
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

// tokens are the Secrets with tokens of the account.
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
