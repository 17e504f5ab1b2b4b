package apiserver

import (
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
)

var podType = reflect.TypeFor[*corev1.Pod]()

func isUntyped(obj client.Object) bool {
	_, ok := obj.(*unstructured.Unstructured)
	return ok
}

// copyStatus makes the status of one object that of another of the same kind.
func copyStatus(from, to client.Object) {
	if u, ok := to.(*unstructured.Unstructured); ok {
		copyUntypedStatus(from, u)
		return
	}
	source, ok := statusOf(from)
	target, same := statusOf(to)
	if ok && same {
		target.Set(source)
	}
}

func copyUntypedStatus(from client.Object, to *unstructured.Unstructured) {
	source, ok := from.(*unstructured.Unstructured)
	if !ok {
		return
	}
	if status, has := source.Object["status"]; has {
		to.Object["status"] = status
		return
	}
	delete(to.Object, "status")
}

// assign makes an object what another of the same Go type is.
func assign(from, to client.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
}

// specDiffers is true if two states of an object differ in more than the metadata
// and the status.
func specDiffers(a, b client.Object) bool {
	return !equality.Semantic.DeepEqual(specOf(a), specOf(b))
}

func specOf(obj client.Object) any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		spec := map[string]any{}
		for key, value := range u.Object {
			if key != "metadata" && key != "status" {
				spec[key] = value
			}
		}
		return spec
	}
	v := reflect.ValueOf(obj).Elem()
	shallow := reflect.New(v.Type()).Elem()
	shallow.Set(v)
	for _, name := range []string{"ObjectMeta", "Status", "TypeMeta"} {
		if f := shallow.FieldByName(name); f.IsValid() {
			f.SetZero()
		}
	}
	return shallow.Interface()
}

// complete gives an object its defaults, and takes away what the API server does not
// keep. Before is nil of what is created.
func (s *Store) complete(before, after client.Object) {
	setDefaults(after)
	set, ok := after.(*appsv1.StatefulSet)
	if was, _ := before.(*appsv1.StatefulSet); !ok || !s.DropsMaxUnavailable || was != nil && hasMaxUnavailable(was) || !hasMaxUnavailable(set) {
		return
	}
	rolling := *set.Spec.UpdateStrategy.RollingUpdate
	rolling.MaxUnavailable = nil
	set.Spec.UpdateStrategy.RollingUpdate = &rolling
}

func hasMaxUnavailable(set *appsv1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.RollingUpdate != nil && set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable != nil
}

// setDefaults gives the fields that were left out the values of the API
// server, as far as anything decides by them.
func setDefaults(obj client.Object) {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		defaultStatefulSet(o)
	case *appsv1.Deployment:
		defaultDeployment(o)
	case *appsv1.DaemonSet:
		defaultDaemonSet(o)
	case *corev1.Pod:
		orElse(&o.Status.Phase, corev1.PodPending)
	case *corev1.Secret:
		orElse(&o.Type, corev1.SecretTypeOpaque)
		defaultSecret(o)
	case *zonesv1.ReplicaTemplate:
		orElsePointer(&o.Spec.Replicas, 1)
	case *corev1.Service:
		orElse(&o.Spec.Type, corev1.ServiceTypeClusterIP)
		if o.Spec.Type != corev1.ServiceTypeExternalName {
			orElse(&o.Spec.ClusterIP, "10.0.0.1")
		}
	}
}

func defaultStatefulSet(o *appsv1.StatefulSet) {
	orElsePointer(&o.Spec.Replicas, 1)
	orElse(&o.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	o.Spec.VolumeClaimTemplates = defaultClaims(o.Spec.VolumeClaimTemplates)
	u := &o.Spec.UpdateStrategy
	if u.Type == "" {
		u.Type = appsv1.RollingUpdateStatefulSetStrategyType
		if u.RollingUpdate == nil {
			u.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
	}
	if u.RollingUpdate == nil || u.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return
	}
	rolling := *u.RollingUpdate
	orElsePointer(&rolling.Partition, 0)
	orElsePointer(&rolling.MaxUnavailable, intstr.FromInt32(1))
	u.RollingUpdate = &rolling
}

// defaultClaims are templates of claims as the API server has them. A list of them is
// applied as a whole, so that what it was given before is given to it once more.
func defaultClaims(templates []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	templates = slices.Clone(templates)
	for i := range templates {
		t := &templates[i]
		t.APIVersion, t.Kind = corev1.SchemeGroupVersion.String(), "PersistentVolumeClaim"
		orElse(&t.Status.Phase, corev1.ClaimPending)
		orElsePointer(&t.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
	return templates
}

func defaultDeployment(o *appsv1.Deployment) {
	orElsePointer(&o.Spec.Replicas, 1)
	orElsePointer(&o.Spec.ProgressDeadlineSeconds, 600)
	u := &o.Spec.Strategy
	orElse(&u.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if u.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return
	}
	rolling := appsv1.RollingUpdateDeployment{}
	if u.RollingUpdate != nil {
		rolling = *u.RollingUpdate
	}
	orElsePointer(&rolling.MaxUnavailable, intstr.FromString("25%"))
	orElsePointer(&rolling.MaxSurge, intstr.FromString("25%"))
	u.RollingUpdate = &rolling
}

func defaultDaemonSet(o *appsv1.DaemonSet) {
	u := &o.Spec.UpdateStrategy
	orElse(&u.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if u.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return
	}
	rolling := appsv1.RollingUpdateDaemonSet{}
	if u.RollingUpdate != nil {
		rolling = *u.RollingUpdate
	}
	orElsePointer(&rolling.MaxUnavailable, intstr.FromInt32(1))
	orElsePointer(&rolling.MaxSurge, intstr.FromInt32(0))
	u.RollingUpdate = &rolling
}

// defaultSecret keeps stringData as data, as the API server does.
func defaultSecret(o *corev1.Secret) {
	if len(o.StringData) == 0 {
		return
	}
	data := make(map[string][]byte, len(o.Data)+len(o.StringData))
	maps.Copy(data, o.Data)
	for key, value := range o.StringData {
		data[key] = []byte(value)
	}
	o.Data, o.StringData = data, nil
}

func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func orElsePointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
