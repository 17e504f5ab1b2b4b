package history

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchAgain is how long to wait before a watch that has ended is begun again.
const watchAgain = time.Second

// Follow tells each Event that Spillway has written in a namespace, in all if it is
// empty, and then each that it writes, until the context ends or tell fails. It tells
// one at a time. If the API server does not answer at first, that is an error; later it is
// retried, and lost is called with the error once an outage.
func Follow(ctx context.Context, c client.WithWatch, namespace string, tell func(*Event) error, lost func(error)) error {
	group, ctx := errgroup.WithContext(ctx)
	notes, isLost := make(chan Event), &atomic.Bool{}
	for _, reporter := range Reporters() {
		f := follower{client: c, namespace: namespace, reporter: reporter, notes: notes, told: map[types.UID]string{}, lost: lost, isLost: isLost}
		group.Go(func() error { return f.follow(ctx) })
	}
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case n := <-notes:
				if err := tell(&n); err != nil {
					return err
				}
			}
		}
	})
	return group.Wait() //nolint:wrapcheck // they have said what it was about
}

// follower looks on at the Events of one reporter.
type follower struct {
	client              client.WithWatch
	namespace, reporter string
	notes               chan<- Event
	// sent are the versions of Events that were sent already.
	told map[types.UID]string
	// lost is called when the API server does not answer, which isLost records for all
	// followers; hasListed is true once it has answered this one.
	lost      func(error)
	isLost    *atomic.Bool
	hasListed bool
}

// follow looks on for as long as the API server tells, and then again.
func (f *follower) follow(ctx context.Context) error {
	for {
		err := f.once(ctx)
		if ctx.Err() != nil {
			return ctx.Err() //nolint:wrapcheck // the caller ended it
		}
		switch {
		case err == nil: // the API server ends watches now and then
		case !f.hasListed, apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return fmt.Errorf("watch Events: %w", err)
		case !apierrors.IsResourceExpired(err) && !f.isLost.Swap(true):
			f.lost(err)
		}
		select {
		case <-ctx.Done():
		case <-clock.RealClock{}.After(watchAgain):
		}
	}
}

// once tells what there is, and what is written until the watch ends.
func (f *follower) once(ctx context.Context) error {
	list := &eventsv1.EventList{}
	if err := f.client.List(ctx, list, client.InNamespace(f.namespace), ReportedBy(f.reporter)); err != nil {
		return err //nolint:wrapcheck // follow does
	}
	f.hasListed = true
	f.isLost.Store(false)
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return EventOf(&a).At.Compare(EventOf(&b).At) })
	for i := range list.Items {
		f.tell(ctx, &list.Items[i])
	}
	w, err := f.client.Watch(ctx, &eventsv1.EventList{}, client.InNamespace(f.namespace), ReportedBy(f.reporter),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return err //nolint:wrapcheck // follow does
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if event, ok := e.Object.(*eventsv1.Event); ok && e.Type != watch.Deleted {
			f.tell(ctx, event)
		}
	}
	return nil
}

// tell hands on an Event, once as it is.
func (f *follower) tell(ctx context.Context, e *eventsv1.Event) {
	if f.told[e.UID] == e.ResourceVersion {
		return
	}
	f.told[e.UID] = e.ResourceVersion
	select {
	case <-ctx.Done():
	case f.notes <- EventOf(e):
	}
}
