package preparehook

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/zones/replica"
)

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get

// Unprepared says which replica cannot be prepared though it may have data, when a
// StatefulSet goes from so many replicas to fewer; empty if none. One that does not run
// has nothing to lose only if its claims were never bound.
func Unprepared(ctx context.Context, live client.Reader, set *appsv1.StatefulSet, pods []corev1.Pod, from, to int) (string, error) {
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return "", nil
	}
	listens := map[string]bool{}
	for i := range pods {
		listens[pods[i].Name] = CanListen(&pods[i])
	}
	first := replica.FirstOrdinal(set)
	for n := first + to; n < first+from; n++ {
		pod := fmt.Sprintf("%s-%d", set.Name, n)
		if listens[pod] {
			continue
		}
		claim, err := boundClaim(ctx, live, set, pod)
		if err != nil {
			return "", err
		}
		if claim != "" {
			return fmt.Sprintf("Pod %s does not run, so it cannot be prepared, and PersistentVolumeClaim %s may have its data", pod, claim), nil
		}
	}
	return "", nil
}

// boundClaim is a claim of a Pod that is bound, or was; empty if there is none.
func boundClaim(ctx context.Context, live client.Reader, set *appsv1.StatefulSet, pod string) (string, error) {
	for i := range set.Spec.VolumeClaimTemplates {
		claim := &corev1.PersistentVolumeClaim{}
		name := set.Spec.VolumeClaimTemplates[i].Name + "-" + pod
		err := live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, claim)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", fmt.Errorf("get PersistentVolumeClaim %s: %w", name, err)
		case claim.Spec.VolumeName != "" || claim.Status.Phase != "" && claim.Status.Phase != corev1.ClaimPending:
			return name, nil
		}
	}
	return "", nil
}
