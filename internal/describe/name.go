package describe

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/nearest"
)

// kindNames are the names that kubectl takes for a kind.
type kindNames struct {
	schema.GroupVersionKind

	names []string
}

// named are the kinds that need not be looked up.
var named = []kindNames{
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), []string{"deployment", "deployments", "deploy"}},
	{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), []string{"statefulset", "statefulsets", "sts"}},
	{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), []string{"daemonset", "daemonsets", "ds"}},
	{appsv1.SchemeGroupVersion.WithKind(KindReplicaSet), []string{"replicaset", "replicasets", "rs"}},
	{batchv1.SchemeGroupVersion.WithKind(KindJob), []string{"job", "jobs"}},
	{batchv1.SchemeGroupVersion.WithKind(KindCronJob), []string{"cronjob", "cronjobs", "cj"}},
	{corev1.SchemeGroupVersion.WithKind(KindPod), []string{"pod", "pods", "po"}},
	{corev1.SchemeGroupVersion.WithKind(KindConfigMap), []string{"configmap", "configmaps", "cm"}},
	{corev1.SchemeGroupVersion.WithKind(KindSecret), []string{"secret", "secrets"}},
	{corev1.SchemeGroupVersion.WithKind(KindService), []string{"service", "services", "svc"}},
	{corev1.SchemeGroupVersion.WithKind(KindClaim), []string{"persistentvolumeclaim", "persistentvolumeclaims", "pvc"}},
	{policyv1.SchemeGroupVersion.WithKind(KindPDB), []string{"poddisruptionbudget", "poddisruptionbudgets", "pdb"}},
	{zonesv1.GroupVersion.WithKind(KindZoneBudget), []string{"zoneawarepoddisruptionbudget", "zoneawarepoddisruptionbudgets", "zpdb"}},
	{spillwayv1.GroupVersion.WithKind(KindGroup), []string{"rolloutgroup", "rolloutgroups", "rog"}},
	{spillwayv1.GroupVersion.WithKind(KindGate), []string{"rolloutgate", "rolloutgates", "gate"}},
	{spillwayv1.GroupVersion.WithKind(KindPolicy), []string{"configpolicy", "configpolicies", "cfp"}},
	{spillwayv1.GroupVersion.WithKind(KindClusterPolicy), []string{"clusterconfigpolicy", "clusterconfigpolicies", "ccfp"}},
	{spillwayv1.GroupVersion.WithKind(KindRevision), []string{"modulerevision", "modulerevisions", "mrev"}},
	{v1beta1.GroupVersion.WithKind(KindInstance), []string{"instance", "instances"}},
	{v1beta1.GroupVersion.WithKind(KindVersion), []string{"operatorversion", "operatorversions", "ov"}},
	{fleetv1.GroupVersion.WithKind(KindModule), []string{"module", "modules"}},
	{fleetv1.GroupVersion.WithKind(KindBootstrap), []string{"bootstrapmodule", "bootstrapmodules"}},
	{fleetv1.GroupVersion.WithKind(KindProxy), []string{"proxyassemblage", "proxyassemblages"}},
	{fleetv1.GroupVersion.WithKind(KindRemote), []string{"remoteassemblage", "remoteassemblages"}},
	{kustomizev1.GroupVersion.WithKind(KindKustomization), []string{"kustomization", "kustomizations", "ks"}},
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
			if word == name || word == name+"."+k.Group {
				return k.Kind
			}
		}
	}
	return ""
}

// KindNamed is a kind that is known here, by its name; false if it is none.
func KindNamed(kind string) (schema.GroupVersionKind, bool) {
	for _, k := range named {
		if k.Kind == kind {
			return k.GroupVersionKind, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// Installs is the command that installs one of Spillway's own kinds.
func Installs(kind string) string {
	for _, k := range named {
		if k.Kind == kind && (k.Group == fleetv1.GroupVersion.Group || kind == KindRevision) {
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

// KindCluster is a cluster of the fleet, which is no object of its own.
const KindCluster = "Cluster"

// The kinds that chains go through.
const (
	KindPod           = "Pod"
	KindReplicaSet    = "ReplicaSet"
	KindJob           = "Job"
	KindCronJob       = "CronJob"
	KindConfigMap     = "ConfigMap"
	KindSecret        = "Secret"
	KindClaim         = "PersistentVolumeClaim"
	KindClass         = "StorageClass"
	KindService       = "Service"
	KindNode          = "Node"
	KindQuota         = "ResourceQuota"
	KindAccount       = "ServiceAccount"
	KindPDB           = "PodDisruptionBudget"
	KindZoneBudget    = "ZoneAwarePodDisruptionBudget"
	KindGroup         = "RolloutGroup"
	KindGate          = "RolloutGate"
	KindPolicy        = "ConfigPolicy"
	KindClusterPolicy = "ClusterConfigPolicy"
	KindRevision      = "ModuleRevision"
	KindInstance      = "Instance"
	KindVersion       = "OperatorVersion"
	KindModule        = "Module"
	KindBootstrap     = "BootstrapModule"
	KindProxy         = "ProxyAssemblage"
	KindRemote        = "RemoteAssemblage"
	KindKustomization = "Kustomization"
	KindLease         = "Lease"

	// What is no object.
	KindZone    = "Zone"
	KindRelease = "Release"
	KindStage   = "Stage"
	KindStep    = "Step"
	KindLock    = "Lock"
	KindManager = "Manager"
)

// NoObjects are the words for what is no object.
var NoObjects = []string{KindCluster, KindZone, KindRelease, KindStage, KindStep, KindLock, KindManager}
