package simulate

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
)

// Present reads what there is in a namespace of a cluster, in all if it is empty, as
// far as a simulation has to do with it. It only reads.
func Present(ctx context.Context, reader client.Reader, namespace string) ([]client.Object, error) {
	var present []client.Object
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &appsv1.DaemonSetList{},
		&appsv1.ControllerRevisionList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.PersistentVolumeClaimList{}, &batchv1.JobList{},
		&policyv1.PodDisruptionBudgetList{}, &v1alpha1.RolloutGroupList{}, &zonesv1.ZoneAwarePodDisruptionBudgetList{},
		&fleetv1.ModuleList{}, &fleetv1.BootstrapModuleList{}, &fleetv1.ProxyAssemblageList{}, &fleetv1.RemoteAssemblageList{},
		&v1alpha1.ModuleRevisionList{}, &v1alpha1.RolloutGateList{}, clusterList(),
		&v1beta1.OperatorList{}, &v1beta1.OperatorVersionList{}, &v1beta1.InstanceList{},
	} {
		err := reader.List(ctx, list, client.InNamespace(namespace))
		if apimeta.IsNoMatchError(err) {
			continue // the ring that has it is not installed
		}
		if err != nil {
			return nil, fmt.Errorf("read the present state: %w", err)
		}
		objects, err := apimeta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("read the present state: %w", err)
		}
		for _, obj := range objects {
			if o, ok := obj.(client.Object); ok {
				present = append(present, o)
			}
		}
	}
	return present, nil
}

func clusterList() client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(cluster.GVK.GroupVersion().WithKind(cluster.GVK.Kind + "List"))
	return list
}

// seed puts in what there is.
func (s *simulation) seed(present []client.Object) error {
	s.now = s.options.Now
	pods := runningIn(present)
	for _, obj := range present {
		if isNumbered(obj) {
			continue
		}
		if err := s.store.Seed(obj); err != nil {
			return fmt.Errorf("take over %s: %w", obj.GetName(), err)
		}
		switch o := obj.(type) {
		case *appsv1.StatefulSet:
			s.seedSet(o)
		case *appsv1.Deployment:
			replicas, current := o.Status.Replicas, o.Status.ObservedGeneration == o.Generation
			s.models.run.of(o.UID).progressed = s.progressedSince(o)
			s.seedReplicas(pods, unit{"deployment", o.Namespace, o.Name}, o, &o.Spec.Template, numbers{replicas, o.Status.UpdatedReplicas, o.Status.ReadyReplicas}, current)
		case *appsv1.DaemonSet:
			scheduled, current := o.Status.CurrentNumberScheduled, o.Status.ObservedGeneration == o.Generation
			s.seedReplicas(pods, unit{"daemonset", o.Namespace, o.Name}, o, &o.Spec.Template, numbers{scheduled, o.Status.UpdatedNumberScheduled, o.Status.NumberReady}, current)
			s.models.run.of(o.UID).nodes = new(int(o.Status.DesiredNumberScheduled))
		}
	}
	return nil
}

// seedSet knows the revisions of a StatefulSet by the names that they have. What its
// older ones were made from matters only to Pods that come back at them.
func (s *simulation) seedSet(o *appsv1.StatefulSet) {
	sets := s.models.sets
	if o.Status.CurrentRevision != "" {
		sets.templates[o.Status.CurrentRevision] = o.Spec.Template
	}
	if o.Status.ObservedGeneration == o.Generation && o.Status.UpdateRevision != "" {
		stored, _ := s.store.Object(o, client.ObjectKeyFromObject(o)).(*appsv1.StatefulSet)
		sets.templates[o.Status.UpdateRevision] = o.Spec.Template
		sets.seen[seenTemplate{o.UID, fingerprint(&stored.Spec.Template)}] = o.Status.UpdateRevision
	}
}

// numbers are of a status: how many there are, are updated, are ready.
type numbers struct{ all, updated, ready int32 }

// seedReplicas makes replicas of Pods, and of a status where no Pods were seen: there
// old ones are taken for ready before new ones are.
func (s *simulation) seedReplicas(pods running, of unit, o client.Object, template *corev1.PodTemplateSpec, n numbers, current bool) {
	set := s.models.run.of(o.GetUID())
	if !current {
		n.updated = 0
	}
	if seen := pods[of]; len(seen) > 0 {
		s.models.run.takeOver(of, o.GetUID(), seen, n.updated, fingerprint(template))
		return
	}
	for i := range n.all {
		r := replica{template: "former", stops: stopping(&template.Spec, s.options.Stop)}
		if i >= n.all-n.updated {
			r.template = fingerprint(template)
		}
		if i < n.ready {
			r.readyAt = s.now.Add(-24 * time.Hour)
		} else if r.template != "former" {
			r.waits, r.began = true, s.now
		}
		set.all = append(set.all, r)
	}
}
