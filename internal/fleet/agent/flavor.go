package agent

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// flavor holds what differs between an Assemblage and a RemoteAssemblage.
type flavor struct {
	kind   string
	object func() client.Object
	list   func() client.ObjectList
	// read is what the controller sees of an object.
	read func(client.Object) Assemblage
	// status is where the object has its status.
	status func(client.Object) *v1alpha1.AssemblageStatus
}

// local are Assemblages, which Flux is applying where it runs.
var local = flavor{
	kind:   "Assemblage",
	object: func() client.Object { return &v1alpha1.Assemblage{} },
	list:   func() client.ObjectList { return &v1alpha1.AssemblageList{} },
	read: func(obj client.Object) Assemblage {
		a, ok := obj.(*v1alpha1.Assemblage)
		if !ok {
			return Assemblage{}
		}
		seen := head(obj, "Assemblage", &a.Status)
		for i := range a.Spec.Syncs {
			s := &a.Spec.Syncs[i]
			seen.Syncs = append(seen.Syncs, Sync{
				Assignment: s.Assignment, SyncOptions: s.SyncOptions, Bindings: s.Bindings, Source: s.Source, Package: s.Package,
			})
		}
		return seen
	},
	status: func(obj client.Object) *v1alpha1.AssemblageStatus {
		a, ok := obj.(*v1alpha1.Assemblage)
		if !ok {
			return nil
		}
		return &a.Status
	},
}

// remote are RemoteAssemblages, which the Flux of the hub applies elsewhere.
var remote = flavor{
	kind:   "RemoteAssemblage",
	object: func() client.Object { return &v1alpha1.RemoteAssemblage{} },
	list:   func() client.ObjectList { return &v1alpha1.RemoteAssemblageList{} },
	read: func(obj client.Object) Assemblage {
		a, ok := obj.(*v1alpha1.RemoteAssemblage)
		if !ok {
			return Assemblage{}
		}
		seen := head(obj, "RemoteAssemblage", &a.Status)
		seen.Secret = a.Spec.KubeconfigRef.Name
		seen.Cluster = ClusterOf(a.Spec.ClusterRef, seen.Secret)
		for i := range a.Spec.Syncs {
			s := &a.Spec.Syncs[i]
			seen.Syncs = append(seen.Syncs, Sync{
				Assignment: s.Assignment, SyncOptions: s.SyncOptions, Bindings: s.ControlPlaneBindings,
				Source: s.Source, SourceRef: s.SourceRef, Package: s.Package,
			})
		}
		return seen
	},
	status: func(obj client.Object) *v1alpha1.AssemblageStatus {
		a, ok := obj.(*v1alpha1.RemoteAssemblage)
		if !ok {
			return nil
		}
		return &a.Status
	},
}

func head(obj client.Object, kind string, status *v1alpha1.AssemblageStatus) Assemblage {
	return Assemblage{
		GroupVersionKind: v1alpha1.GroupVersion.WithKind(kind), NamespacedName: client.ObjectKeyFromObject(obj),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(),
		Deleting: obj.GetDeletionTimestamp() != nil, HasFinalizer: controllerutil.ContainsFinalizer(obj, vocabulary.AssemblageFinalizer),
		Abandoned: vocabulary.AbandonCluster.Get(obj.GetAnnotations()) == "true", Status: *status.DeepCopy(),
	}
}

// ClusterOf is the name of the cluster of an assemblage.
func ClusterOf(ref *v1alpha1.ClusterReference, secret string) string {
	if ref != nil {
		return ref.Name
	}
	return cluster.NameOf(secret)
}

// secretKey is the Secret with the kubeconfig of an assemblage.
func (a *Assemblage) secretKey() types.NamespacedName {
	return types.NamespacedName{Namespace: a.Namespace, Name: a.Secret}
}
