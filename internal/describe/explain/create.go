package explain

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
)

// uncreated is why the Pods of a workload are not created, nil if no Event or condition says so.
func (a *asker) uncreated(ctx context.Context, w *Workload) (*answer, error) {
	if w.Kind == workloads.Deployment {
		return a.uncreatedByReplicaSets(ctx, w)
	}
	if w.created >= w.Wants && w.Kind != describe.KindJob {
		return nil, nil //nolint:nilnil // all are made
	}
	if set, ok := w.Object.(*appsv1.ReplicaSet); ok {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				return a.refusal(ctx, w.Ref(), c.Message), nil
			}
		}
		return nil, nil //nolint:nilnil // nothing is wrong
	}
	message, err := a.failedCreate(ctx, w)
	if err != nil || message == "" {
		return nil, err
	}
	return a.refusal(ctx, w.Ref(), message), nil
}

func (a *asker) uncreatedByReplicaSets(ctx context.Context, w *Workload) (*answer, error) {
	sets, err := a.workloads(ctx, describe.KindReplicaSet, w.GetNamespace())
	if err != nil {
		return nil, err
	}
	for i := range sets {
		if !metav1.IsControlledBy(sets[i].Object, w.Object) {
			continue
		}
		if refused, err := a.uncreated(ctx, &sets[i]); err != nil || refused != nil {
			return refused, err
		}
	}
	return nil, nil //nolint:nilnil // nothing is wrong
}

// failedCreate is the last Event that says why a Pod was not made, empty if there is
// none, or if one was made since. StatefulSets, DaemonSets and Jobs say it nowhere else.
func (a *asker) failedCreate(ctx context.Context, w *Workload) (string, error) {
	var list corev1.EventList
	err := a.Client.List(ctx, &list, client.InNamespace(w.GetNamespace()), client.MatchingFields{"involvedObject.uid": string(w.GetUID())})
	if err != nil {
		return "", fmt.Errorf("list Events: %w", err)
	}
	var last *corev1.Event
	var made metav1.Time
	for i := range list.Items {
		switch e := &list.Items[i]; {
		case e.Reason == "FailedCreate" && (last == nil || eventTime(last).Before(eventTime(e))):
			last = e
		case e.Reason == "SuccessfulCreate" && made.Before(eventTime(e)):
			made = *eventTime(e)
		}
	}
	if last == nil {
		return "", nil
	}
	if newest, err := a.newestPod(ctx, w); err == nil && made.Before(&newest) {
		made = newest
	}
	if !made.Before(eventTime(last)) { // in the same second it is over: if not, there will be another
		return "", nil
	}
	return last.Message, nil
}

// newestPod is when the newest Pod of a workload was made.
func (a *asker) newestPod(ctx context.Context, w *Workload) (metav1.Time, error) {
	pods, err := a.pods(ctx, w)
	var newest metav1.Time
	for i := range pods {
		if newest.Before(&pods[i].CreationTimestamp) {
			newest = pods[i].CreationTimestamp
		}
	}
	return newest, err
}

func eventTime(e *corev1.Event) *metav1.Time {
	if e.LastTimestamp.IsZero() {
		return &metav1.Time{Time: e.EventTime.Time}
	}
	return &e.LastTimestamp
}
