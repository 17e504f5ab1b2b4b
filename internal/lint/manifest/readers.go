package manifest

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// discoverers are how the labels and annotations begin by which programs find their
// config, whatever it is called. They are keys of others, as fillers are.
var discoverers = []string{
	"grafana_", "loki_rule", "prometheus_rule",
	"argocd.argoproj.io/secret-type",
	"cluster.x-k8s.io/", "clusterctl.cluster.x-k8s.io",
	"cnpg.io/",
	"config.kubernetes.io/local-config",
	"control-plane.alpha.kubernetes.io/leader",
	"crossplane.io/",
	"external-secrets.io/",
	"istio.io/", "istio/",
	"knative.dev/",
	"sealedsecrets.bitnami.com/sealed-secrets-key",
	"strimzi.io/",
	"velero.io/",
}

// systemTypes are those of Secrets that parts of Kubernetes, and Helm, find
// automatically.
var systemTypes = []corev1.SecretType{corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken, "helm.sh/release.v1"}

// IsDiscovered is true of config that a program finds though nothing names it.
func IsDiscovered(o *Object) bool {
	if secret, ok := o.Typed.(*corev1.Secret); ok && slices.Contains(systemTypes, secret.Type) {
		return true
	}
	return IsFleetCluster(o) || hasKey(o, discoverers) || o.Object.GetLabels()["app.kubernetes.io/part-of"] == "argocd"
}

// IsFleetCluster is true of what stands for a cluster of the fleet.
func IsFleetCluster(o *Object) bool {
	return o.Is("cluster.x-k8s.io", "Cluster") || o.Is("", "Secret") && vocabulary.Cluster.Get(o.Object.GetLabels()) == "true"
}

// systemNamespaces are those of the parts of Kubernetes and its providers, which read
// config by names that are their own.
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// PossibleReader names what may be using config that nothing names; empty if nothing can.
func (m *Manifests) PossibleReader(o *Object) string {
	ref := o.AsConfig()
	if _, _, shared := vocabulary.SharedWith.Lookup(o.Object.GetAnnotations()); shared {
		return "workloads of the namespaces that it is shared with may"
	}
	if slices.Contains(systemNamespaces, ref.Namespace) {
		return "parts of Kubernetes may"
	}
	for _, w := range m.Runs(ref.Namespace) {
		if template, _ := w.O.Pods(); m.mayRead(ref, &template.Spec) {
			return w.O.Kind() + " " + w.O.Name() + " may, by its permissions"
		}
	}
	return ""
}

// PossibleMaker names what may make config that is not among the manifests; empty if
// nothing can.
func (m *Manifests) PossibleMaker(ref content.Object) string {
	if m.Mentions.made.has(ref.Namespace, ref.Name) {
		return "an object among the manifests names it as what it makes"
	}
	for _, o := range m.Objects {
		if template, _ := o.Pods(); template != nil && m.may(o.Namespace(), &template.Spec, ref, "create") {
			return o.Kind() + " " + o.Name() + " may create it, by its permissions"
		}
	}
	return ""
}

// mayRead is true of Pods that are permitted to read all config of a kind in their
// namespace, and so may have names in their program.
func (m *Manifests) mayRead(ref content.Object, pod *corev1.PodSpec) bool {
	return m.may(ref.Namespace, pod, ref, "get", "list", "watch")
}

// may is true if the Pods of a namespace are permitted one of some verbs on all config of
// a kind, there where an object is.
func (m *Manifests) may(namespace string, pod *corev1.PodSpec, ref content.Object, verbs ...string) bool {
	account := cmp.Or(pod.ServiceAccountName, "default")
	return slices.ContainsFunc(m.bindings, func(b roleBinding) bool {
		return (b.namespace == ref.Namespace || b.namespace == anywhere) && b.isFor(namespace, account) && m.permits(&b, ref.Kind, verbs)
	})
}

// roleBinding is what gives subjects a role, in a namespace or in all.
type roleBinding struct {
	namespace string
	subjects  []rbacv1.Subject
	role      rbacv1.RoleRef
}

// isFor is true if a service account is among those who get the role. One that is named
// without a namespace is in that of the binding.
func (b *roleBinding) isFor(namespace, account string) bool {
	groups := []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + namespace}
	return slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool {
		if s.Kind == rbacv1.GroupKind {
			return slices.Contains(groups, s.Name)
		}
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == account && (s.Namespace == namespace || s.Namespace == "" && b.namespace == namespace)
	})
}

// permits is true if a role has one of some verbs on all config of a kind. What roles that
// are not among the manifests permit is not known; those of Kubernetes itself do not.
func (m *Manifests) permits(b *roleBinding, kind content.Kind, verbs []string) bool {
	rules, known := m.rules(b)
	if !known {
		return !strings.HasPrefix(b.role.Name, "system:")
	}
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return len(rule.ResourceNames) == 0 && HasAny(rule.APIGroups, "*", "") &&
			HasAny(rule.Resources, "*", resources[kind]) && HasAny(rule.Verbs, append(verbs, "*")...)
	})
}

// HasAny is true of a list that has one of some texts.
func HasAny(list []string, wanted ...string) bool {
	return slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(list, w) })
}

// rules are those of a role; not known, if it is not among the manifests.
func (m *Manifests) rules(b *roleBinding) (rules []rbacv1.PolicyRule, known bool) {
	if b.role.Kind == "Role" {
		_, role := Find[*rbacv1.Role](m, b.namespace, b.role.Name)
		if role == nil {
			return nil, false
		}
		return role.Rules, true
	}
	_, role := Find[*rbacv1.ClusterRole](m, anywhere, b.role.Name)
	if role == nil {
		return nil, false
	}
	return role.Rules, true
}

// roleBinding is the object as a binding of a role, if it is one.
func (o *Object) roleBinding() (roleBinding, bool) {
	switch b := o.Typed.(type) {
	case *rbacv1.RoleBinding:
		return roleBinding{b.Namespace, b.Subjects, b.RoleRef}, true
	case *rbacv1.ClusterRoleBinding:
		return roleBinding{anywhere, b.Subjects, b.RoleRef}, true
	default:
		return roleBinding{}, false
	}
}

// fillers are how the labels and annotations begin by which controllers know the
// ConfigMaps and Secrets that they fill in, or by which they mark those that they have
// filled in. They are keys of others, which Spillway neither reads nor writes in a
// cluster; so they are no part of the vocabulary.
var fillers = []string{
	"config.openshift.io/inject-trusted-cabundle",
	"service.beta.openshift.io/inject-cabundle",
	"service.alpha.openshift.io/inject-cabundle",
	"cert-manager.io/",
	"trust.cert-manager.io/",
	"reflector.v1.k8s.emberstack.com/reflects",
	"replicator.v1.mittwald.de/replicate-from",
	"secret-generator.v1.mittwald.de/",
	"sealedsecrets.bitnami.com/",
	"reconcile.external-secrets.io/",
	"secrets.hashicorp.com/",
	vocabulary.GenerateOnce.Native,
}

// IsFilled is true of a ConfigMap or Secret of which a controller writes the data, so
// that its manifest does not say what is in it.
func (m *Manifests) IsFilled(o *Object) bool {
	if secret, ok := o.Typed.(*corev1.Secret); ok && secret.Type == corev1.SecretTypeServiceAccountToken {
		return true
	}
	return hasKey(o, fillers) || m.Mentions.made.has(o.Namespace(), o.Name())
}

// hasKey is true of an object with a label or annotation that begins in one of some
// ways.
func hasKey(o *Object, beginnings []string) bool {
	keys := append(SortedKeys(o.Object.GetAnnotations()), SortedKeys(o.Object.GetLabels())...)
	return slices.ContainsFunc(keys, func(key string) bool {
		return slices.ContainsFunc(beginnings, func(beginning string) bool { return strings.HasPrefix(key, beginning) })
	})
}

// inEveryNamespace are the ConfigMaps that are in each namespace without anybody's doing.
var inEveryNamespace = []string{"kube-root-ca.crt", "openshift-service-ca.crt"}

// IsThere is true of config that is among the manifests, or that something among them
// makes, or Kubernetes itself.
func (m *Manifests) IsThere(ref content.Object) bool {
	return m.Configs[ref] != nil || m.Mentions.made.has(ref.Namespace, ref.Name) ||
		ref.Kind == content.ConfigMap && slices.Contains(inEveryNamespace, ref.Name)
}
