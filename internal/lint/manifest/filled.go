package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

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
