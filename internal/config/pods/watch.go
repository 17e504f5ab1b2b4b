package pods

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watching reads Pods by watches, one for each namespace for as long as it is kept. It is
// for one caller at a time.
type Watching struct {
	client client.WithWatch
	// begin makes the context of a watch, which ends with the manager.
	begin func() (context.Context, context.CancelFunc)
	// changed is called when the Pods of a namespace are known, and when one has changed.
	changed func()
	started map[string]*watching
}

// NewWatching returns a reader that calls changed when it reads something else than before.
func NewWatching(c client.WithWatch, begin func() (context.Context, context.CancelFunc), changed func()) *Watching {
	return &Watching{client: c, begin: begin, changed: changed, started: map[string]*watching{}}
}

// watching is the watch of a namespace.
type watching struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc

	mu  sync.Mutex
	err error
}

// In implements [Reader]. It starts a watch, and does not wait for it.
func (w *Watching) In(_ context.Context, namespace string) Pods {
	of := w.started[namespace]
	if of == nil {
		of = w.start(namespace) //nolint:contextcheck // it outlives the pass
		w.started[namespace] = of
	}
	switch err := of.failed(); {
	case of.informer.HasSynced():
		return Pods{Items: itemsOf(of.informer.GetStore())}
	case apierrors.IsForbidden(err):
		return Pods{Forbidden: true}
	case err != nil:
		return Pods{Unknown: err.Error()}
	default:
		return Pods{Unknown: "they are being listed"}
	}
}

// Keep implements [Reader].
func (w *Watching) Keep(namespaces map[string]bool) {
	for namespace, of := range w.started {
		if !namespaces[namespace] {
			of.stop()
			delete(w.started, namespace)
		}
	}
}

func (w *Watching) start(namespace string) *watching {
	ctx, stop := w.begin()
	of := &watching{stop: stop, informer: cache.NewSharedIndexInformerWithOptions(w.listed(namespace), &corev1.Pod{}, cache.SharedIndexInformerOptions{})}
	err := of.informer.SetTransform(reduce)
	if err == nil {
		err = of.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			if of.fail(err) {
				w.changed()
			}
			cache.DefaultWatchErrorHandler(ctx, r, err)
		})
	}
	if err == nil {
		_, err = of.informer.AddEventHandler(w.handler(of))
	}
	_ = of.fail(err)
	go of.informer.RunWithContext(ctx)
	go func() {
		select {
		case <-of.informer.HasSyncedChecker().Done():
			w.changed()
		case <-ctx.Done():
		}
	}()
	return of
}

// listed lists and watches the Pods of a namespace.
func (w *Watching) listed(namespace string) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.PodList{}
			err := w.client.List(ctx, list, &client.ListOptions{Namespace: namespace, Raw: &o})
			return list, err //nolint:wrapcheck // the reflector reads what it is
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return w.client.Watch(ctx, &corev1.PodList{}, &client.ListOptions{Namespace: namespace, Raw: &o})
		},
	}
}

// handler calls changed once all Pods are known, for what changes a [State].
func (w *Watching) handler(of *watching) cache.ResourceEventHandler {
	changed := func() {
		if of.informer.HasSynced() {
			w.changed()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		DeleteFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			if a, ok := before.(*corev1.Pod); ok {
				if b, ok := after.(*corev1.Pod); ok && !differ(a, b) {
					return
				}
			}
			changed()
		},
	}
}

func (of *watching) failed() error {
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.err
}

// fail notes an error. It is true if it is another one than before.
func (of *watching) fail(err error) bool {
	of.mu.Lock()
	defer of.mu.Unlock()
	differs := err != nil && (of.err == nil || of.err.Error() != err.Error())
	of.err = err
	return differs
}

func itemsOf(store cache.Store) []*corev1.Pod {
	var items []*corev1.Pod
	for _, item := range store.List() {
		if pod, ok := item.(*corev1.Pod); ok {
			items = append(items, pod)
		}
	}
	return items
}

// reduce keeps of a Pod what [Pods.Of] reads. It is the transform of a store, so that no spec
// stays in memory.
func reduce(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T is no Pod", obj)
	}
	kept := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: pod.OwnerReferences, Annotations: hashOf(pod.Annotations),
	}}
	kept.Spec.NodeName, kept.Status.Phase, kept.Status.StartTime = pod.Spec.NodeName, pod.Status.Phase, pod.Status.StartTime
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			kept.Status.Conditions = append(kept.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	if isUnschedulable(pod) {
		kept.Status.Conditions = append(kept.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})
	}
	kept.Status.InitContainerStatuses, kept.Status.ContainerStatuses = reduceAll(pod.Status.InitContainerStatuses), reduceAll(pod.Status.ContainerStatuses)
	return kept, nil
}
