package describe

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/nearest"
)

// kindNames are the names that kubectl takes for a kind.
type kindNames struct {
	kind, group string
	names       []string
}

// named are the kinds that need not be looked up.
var named = []kindNames{
	{"Deployment", "apps", []string{"deployment", "deployments", "deploy"}},
	{"StatefulSet", "apps", []string{"statefulset", "statefulsets", "sts"}},
	{"DaemonSet", "apps", []string{"daemonset", "daemonsets", "ds"}},
	{KindReplicaSet, "apps", []string{"replicaset", "replicasets", "rs"}},
	{KindJob, "batch", []string{"job", "jobs"}},
	{KindCronJob, "batch", []string{"cronjob", "cronjobs", "cj"}},
	{KindPod, "", []string{"pod", "pods", "po"}},
	{KindConfigMap, "", []string{"configmap", "configmaps", "cm"}},
	{KindSecret, "", []string{"secret", "secrets"}},
	{KindService, "", []string{"service", "services", "svc"}},
	{KindClaim, "", []string{"persistentvolumeclaim", "persistentvolumeclaims", "pvc"}},
	{KindPDB, "policy", []string{"poddisruptionbudget", "poddisruptionbudgets", "pdb"}},
	{KindZoneBudget, "rollout-operator.grafana.com", []string{"zoneawarepoddisruptionbudget", "zoneawarepoddisruptionbudgets", "zpdb"}},
	{KindGroup, "spillway.dev", []string{"rolloutgroup", "rolloutgroups", "rog"}},
	{KindGate, "spillway.dev", []string{"rolloutgate", "rolloutgates", "gate"}},
	{KindPolicy, "spillway.dev", []string{"configpolicy", "configpolicies", "cfp"}},
	{KindClusterPolicy, "spillway.dev", []string{"clusterconfigpolicy", "clusterconfigpolicies", "ccfp"}},
	{KindRevision, "spillway.dev", []string{"modulerevision", "modulerevisions", "mrev"}},
	{KindInstance, "kudo.dev", []string{"instance", "instances"}},
	{KindVersion, "kudo.dev", []string{"operatorversion", "operatorversions", "ov"}},
	{KindModule, "fleet.squaremo.dev", []string{"module", "modules"}},
	{KindBootstrap, "fleet.squaremo.dev", []string{"bootstrapmodule", "bootstrapmodules"}},
	{KindProxy, "fleet.squaremo.dev", []string{"proxyassemblage", "proxyassemblages"}},
	{KindRemote, "fleet.squaremo.dev", []string{"remoteassemblage", "remoteassemblages"}},
	{KindKustomization, "kustomize.toolkit.fluxcd.io", []string{"kustomization", "kustomizations", "ks"}},
}

// ErrNotNamed is returned for an argument that does not name an object.
var ErrNotNamed = errors.New("name it as deployment/NAME, statefulset/NAME, daemonset/NAME, rolloutgroup/NAME, instance/NAME, module/NAME, pod/NAME or another KIND/NAME")

// Named is what a person means by KIND/NAME, by all names that kubectl takes for the
// kind. The mapper is asked only for kinds that are neither Kubernetes' nor Spillway's
// own, and may be nil until then.
func Named(mapper func() (apimeta.RESTMapper, error), namespace, arg string) (Ref, error) {
	word, name, err := Split(arg)
	if err != nil {
		return Ref{}, err
	}
	if kind := kindOf(word); kind != "" {
		if kind == KindClusterPolicy {
			namespace = ""
		}
		return Ref{Kind: kind, Namespace: namespace, Name: name}, nil
	}
	kinds, err := mapper()
	if err != nil {
		return Ref{}, err
	}
	gvk, err := kinds.KindFor(resourceOf(word))
	if err != nil {
		if near := nearest.Meant(word, words()); near != "" {
			return Ref{}, fmt.Errorf("%q is not known: the cluster has no kind %q; did you mean %s/%s?", arg, word, near, name)
		}
		return Ref{}, fmt.Errorf("%q is not known: the cluster has no kind %q; %w", arg, word, ErrNotNamed)
	}
	mapping, err := kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return Ref{}, fmt.Errorf("look for the kind %s: %w", gvk.Kind, err)
	}
	ref := Ref{Kind: gvk.Kind, Namespace: namespace, Name: name, APIVersion: gvk.GroupVersion().String()}
	if mapping.Scope.Name() == apimeta.RESTScopeNameRoot {
		ref.Namespace = ""
	}
	return ref, nil
}

// kindOf is the kind that a word stands for, empty if it is none that is known here.
func kindOf(word string) string {
	for _, k := range named {
		for _, name := range k.names {
			if word == name || word == name+"."+k.group {
				return k.kind
			}
		}
	}
	return ""
}

// Installs is the command that installs one of Spillway's own kinds.
func Installs(kind string) string {
	for _, k := range named {
		if k.kind == kind && (k.group == "fleet.squaremo.dev" || kind == KindRevision) {
			return "spillway install --rings=fleet"
		}
	}
	return "spillway install"
}

// words are the kinds as they are most often written. A short name is too short to be
// nearly another.
func words() []string {
	words := make([]string, len(named))
	for i := range named {
		words[i] = named[i].names[0]
	}
	return words
}

// NoKind is the error for a name without a kind, nil if the argument has one.
func NoKind(arg string) error {
	switch kind := kindOf(strings.ToLower(arg)); {
	case strings.Contains(arg, "/"):
		return nil
	case kind != "":
		return fmt.Errorf("%q is a kind: name an object of it as KIND/NAME, such as %s/web", arg, strings.ToLower(kind))
	default:
		return fmt.Errorf("%q has no kind: name it as KIND/NAME, such as deployment/%s", arg, cmp.Or(arg, "web"))
	}
}

// Split splits KIND/NAME as a person types it.
func Split(arg string) (kind, name string, err error) {
	kind, name, ok := strings.Cut(arg, "/")
	if !ok {
		return "", "", NoKind(arg)
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is not known; %w", arg, ErrNotNamed)
	}
	return strings.ToLower(kind), name, nil
}

// resourceOf is "certificates.cert-manager.io" in its parts.
func resourceOf(word string) schema.GroupVersionResource {
	return schema.ParseGroupResource(word).WithVersion("")
}
