package pods

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Pods are those of a namespace.
type Pods struct {
	// Items are read-only.
	Items []*corev1.Pod
	// Unknown says why they are not known yet. Forbidden is true if they must not be read.
	Unknown   string
	Forbidden bool
}

// Reader reads Pods.
type Reader interface {
	// In returns the Pods of a namespace.
	In(ctx context.Context, namespace string) Pods
	// Keep ends what In has begun for other namespaces than these.
	Keep(namespaces map[string]bool)
}

// Listing reads Pods with a client, for a caller who reads once.
type Listing struct{ Client client.Reader }

// In implements [Reader].
func (l Listing) In(ctx context.Context, namespace string) Pods {
	var list corev1.PodList
	err := l.Client.List(ctx, &list, client.InNamespace(namespace))
	switch {
	case apierrors.IsForbidden(err):
		return Pods{Forbidden: true}
	case err != nil:
		return Pods{Unknown: err.Error()}
	}
	items := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		items[i] = &list.Items[i]
	}
	return Pods{Items: items}
}

// Keep implements [Reader].
func (Listing) Keep(map[string]bool) {}

// hashOf keeps the hash of the config.
func hashOf(annotations map[string]string) map[string]string {
	hash, name, ok := vocabulary.ConfigHash.Lookup(annotations)
	if !ok {
		return nil
	}
	return map[string]string{name: hash}
}

func reduceAll(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range statuses {
		c, s := corev1.ContainerStatus{}, &statuses[i]
		if w := s.State.Waiting; w != nil {
			c.State.Waiting = &corev1.ContainerStateWaiting{Reason: w.Reason}
		}
		if last := s.LastTerminationState.Terminated; last != nil && s.RestartCount > 1 {
			c.RestartCount = 2 // more say no more
			c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: last.ExitCode, FinishedAt: last.FinishedAt}
		}
		if !reflect.ValueOf(c).IsZero() {
			kept = append(kept, c)
		}
	}
	return kept
}

// differ is true if two versions of a reduced Pod differ in what [Pods.Of] reads.
func differ(a, b *corev1.Pod) bool {
	return (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) || a.Spec.NodeName != b.Spec.NodeName ||
		!reflect.DeepEqual(a.Status, b.Status) || !reflect.DeepEqual(a.Labels, b.Labels) || !reflect.DeepEqual(a.Annotations, b.Annotations)
}
