package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

// Present reads what there is in a namespace of a cluster, in all if it is empty, as
// far as a simulation has to do with it, and in the namespaces of a change. Of others it
// reads what workloads and Instances name there. It only reads.
func Present(ctx context.Context, reader client.Reader, namespace string, change ...*unstructured.Unstructured) ([]client.Object, error) {
	p := &presence{Reader: reader, listed: map[string]bool{}, named: map[string]bool{}}
	for _, name := range namespacesOf(namespace, change) {
		p.listed[name] = true
		for _, list := range lists() {
			if err := p.list(ctx, list, name); err != nil {
				return nil, err
			}
		}
	}
	if err := p.policies(ctx); err != nil {
		return nil, err
	}
	for _, obj := range slices.Concat(p.objects, typed(change, namespace)) {
		if err := p.follow(ctx, obj); err != nil {
			return nil, err
		}
	}
	return p.objects, nil
}

// policies reads the policies of releases of config in the namespaces that were listed, and what has failed, as far
// as the caller may: as for status and explain, those that must not be read do not count.
func (p *presence) policies(ctx context.Context) error {
	lists := map[string][]client.ObjectList{"": {&v1alpha1.ClusterConfigPolicyList{}}}
	for namespace := range p.listed {
		lists[namespace] = append(lists[namespace], &v1alpha1.ConfigPolicyList{}, &v1alpha1.ConfigRolloutList{}, &v1alpha1.GateTemplateList{})
	}
	for namespace, all := range lists {
		for _, list := range all {
			if err := p.list(ctx, list, namespace); err != nil && !apierrors.IsForbidden(err) {
				return err
			}
		}
	}
	if !p.listed[""] || !slices.ContainsFunc(p.objects, stagesNamespaces) {
		return nil
	}
	if err := p.list(ctx, &corev1.NamespaceList{}, ""); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// stagesNamespaces is true of a policy with stages of namespaces.
func stagesNamespaces(obj client.Object) bool {
	p, ok := obj.(*v1alpha1.ClusterConfigPolicy)
	return ok && len(p.Spec.NamespaceStages) > 0
}

// lists are the kinds with which a simulation has to do.
func lists() []client.ObjectList {
	return []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &appsv1.DaemonSetList{},
		&appsv1.ControllerRevisionList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.PersistentVolumeClaimList{}, &batchv1.JobList{},
		&policyv1.PodDisruptionBudgetList{}, &v1alpha1.RolloutGroupList{}, &zonesv1.ZoneAwarePodDisruptionBudgetList{}, &zonesv1.ReplicaTemplateList{},
		&fleetv1.ModuleList{}, &fleetv1.BootstrapModuleList{}, &fleetv1.ProxyAssemblageList{}, &fleetv1.RemoteAssemblageList{},
		&v1alpha1.ModuleRevisionList{}, &v1alpha1.RolloutGateList{}, &v1alpha1.ClusterBudgetList{}, clusterList(),
		&v1beta1.OperatorList{}, &v1beta1.OperatorVersionList{}, &v1beta1.InstanceList{}, content.PodStatuses(),
	}
}

// namespacesOf are a namespace and those of a change.
func namespacesOf(namespace string, change []*unstructured.Unstructured) []string {
	if namespace == "" {
		return []string{""}
	}
	namespaces := []string{namespace}
	for _, u := range change {
		if other := u.GetNamespace(); other != "" && !slices.Contains(namespaces, other) {
			namespaces = append(namespaces, other)
		}
	}
	return namespaces
}

// typed are the objects of a change that may name others, as far as they can be read.
func typed(change []*unstructured.Unstructured, namespace string) []client.Object {
	var all []client.Object
	for _, u := range change {
		var obj client.Object
		switch u.GroupVersionKind() {
		case appsv1.SchemeGroupVersion.WithKind("Deployment"):
			obj = &appsv1.Deployment{}
		case appsv1.SchemeGroupVersion.WithKind("StatefulSet"):
			obj = &appsv1.StatefulSet{}
		case appsv1.SchemeGroupVersion.WithKind("DaemonSet"):
			obj = &appsv1.DaemonSet{}
		case v1beta1.GroupVersion.WithKind("Instance"):
			obj = &v1beta1.Instance{}
		default:
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err == nil {
			obj.SetNamespace(cmp.Or(obj.GetNamespace(), namespace))
			all = append(all, obj)
		}
	}
	return all
}

// presence reads what there is.
type presence struct {
	client.Reader

	objects []client.Object
	// listed are the namespaces of which all was read, named what was read of others.
	listed, named map[string]bool
}

// follow reads what an object names in a namespace that was not listed.
func (p *presence) follow(ctx context.Context, obj client.Object) error {
	var errs []error
	if set, ok := obj.(*appsv1.StatefulSet); ok {
		errs = append(errs, p.mirrored(ctx, set))
	}
	switch o := obj.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
		for _, use := range workload.ManifestOf(o).Uses {
			key := types.NamespacedName{Namespace: use.Object.Namespace, Name: use.Object.Name}
			switch use.Object.Kind {
			case content.ConfigMap:
				errs = append(errs, p.read(ctx, &corev1.ConfigMap{}, key))
			case content.Secret:
				errs = append(errs, p.read(ctx, &corev1.Secret{}, key))
			}
		}
	case *v1beta1.Instance:
		version := choice.VersionKey(o.Namespace, &o.Spec)
		if !p.isListed(version.Namespace) && !p.named[version.Namespace] { // it may name others of its namespace
			p.named[version.Namespace] = true
			errs = append(errs, p.list(ctx, &v1beta1.OperatorVersionList{}, version.Namespace))
		}
		if pin, ok := choice.PinOf(o); ok {
			errs = append(errs, p.read(ctx, &appsv1.ControllerRevision{}, pin))
		}
	}
	return errors.Join(errs...)
}

// mirrored reads the object that a StatefulSet mirrors, unless it is of a kind that is listed.
func (p *presence) mirrored(ctx context.Context, set *appsv1.StatefulSet) error {
	m := scaling.SettingsOf(set.Labels, set.Annotations).Mirror
	if m == nil || m.Kind.Group == appsv1.GroupName || m.Kind.Group == zonesv1.GroupVersion.Group {
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(m.Kind)
	key := types.NamespacedName{Namespace: set.Namespace, Name: m.Name}
	err := p.once(ctx, m.Kind.String()+" "+key.String(), u, key)
	if apimeta.IsNoMatchError(err) {
		return nil // the simulation says so, in the words of the manager
	}
	if err != nil {
		return fmt.Errorf("read what StatefulSet %s mirrors: %w", set.Name, err)
	}
	return nil
}

// read reads one object, unless it was read or does not exist.
func (p *presence) read(ctx context.Context, obj client.Object, key types.NamespacedName) error {
	if p.isListed(key.Namespace) {
		return nil
	}
	if err := p.once(ctx, fmt.Sprintf("%T %s", obj, key), obj, key); err != nil {
		return fmt.Errorf("read what is named in another namespace: %w", err)
	}
	return nil
}

// once reads one object, unless one of this name was read or it does not exist.
func (p *presence) once(ctx context.Context, name string, obj client.Object, key types.NamespacedName) error {
	if p.named[name] {
		return nil
	}
	p.named[name] = true
	err := p.Get(ctx, key, obj)
	if err == nil {
		p.objects = append(p.objects, obj)
	}
	return client.IgnoreNotFound(err) //nolint:wrapcheck // the callers say what for
}

func (p *presence) isListed(namespace string) bool { return p.listed[""] || p.listed[namespace] }

func clusterList() client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(cluster.GVK.GroupVersion().WithKind(cluster.GVK.Kind + "List"))
	return list
}

func (p *presence) list(ctx context.Context, list client.ObjectList, namespace string) error {
	err := p.List(ctx, list, client.InNamespace(namespace))
	if apimeta.IsNoMatchError(err) {
		return nil // the ring that has it is not installed
	}
	if err != nil {
		return fmt.Errorf("read the present state: %w", err)
	}
	objects, err := apimeta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("read the present state: %w", err)
	}
	for _, obj := range objects {
		if o, ok := obj.(client.Object); ok {
			p.objects = append(p.objects, o)
		}
	}
	return nil
}
