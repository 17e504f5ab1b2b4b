package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// servedWithin is how long after its definition a kind may need to be served.
	servedWithin = time.Minute
	// servedEvery is how often to ask for that meanwhile.
	servedEvery = time.Second
	// unseenEvery is how often to ask whether a kind is served of which the definition must not
	// be watched: the API server says in no other way that its kinds change.
	unseenEvery = 10 * time.Second
)

// UntilDefined waits until the CustomResourceDefinition of a kind exists and done is true, or
// the context is over, which is no error. Done is asked once at the beginning, and then for a
// minute after each change of the definition; errors of it count as false. A manager that may
// not list and watch the definition asks every ten seconds.
func UntilDefined(ctx context.Context, mgr ctrl.Manager, kind schema.GroupVersionKind, done wait.ConditionWithContextFunc) error {
	if ok, err := done(ctx); err == nil && ok {
		return nil
	}
	c, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client that watches definitions: %w", err)
	}
	tolerant := wait.ConditionWithContextFunc(func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		return err == nil && ok, nil
	})
	definition := definitionOf(c, kind)
	if _, err := toolscache.ToListerWatcherWithContext(definition).ListWithContext(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsForbidden(err) {
		mgr.GetLogger().V(1).Info("no permission to list and watch the definition of a kind; asking for the kind itself", "kind", kind.Kind, "every", unseenEvery.String())
		_ = wait.PollUntilContextCancel(ctx, unseenEvery, false, tolerant) // it ends with the context
		return nil
	}
	_, err = watchtools.UntilWithSync(ctx, definition, &metav1.PartialObjectMetadata{}, nil, func(watch.Event) (bool, error) {
		err := wait.PollUntilContextTimeout(ctx, servedEvery, servedWithin, true, tolerant)
		return err == nil, ctx.Err() // else until the definition changes
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("wait for the kind %s: %w", kind.Kind, err)
	}
	return nil
}

// definitionOf lists and watches the definition of a kind, by its metadata.
func definitionOf(c client.WithWatch, kind schema.GroupVersionKind) toolscache.ListerWatcher {
	plural, _ := apimeta.UnsafeGuessKindToResource(kind)
	named := fields.OneTermEqualSelector(metav1.ObjectNameField, plural.GroupResource().String())
	options := func(o metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{FieldSelector: named, Raw: &o}
	}
	list := func() *metav1.PartialObjectMetadataList {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
		return l
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l := list()
			err := c.List(ctx, l, options(o))
			return l, err //nolint:wrapcheck // the reflector reads what it is
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list(), options(o))
		},
	}
}
