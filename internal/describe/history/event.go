package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/decision"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Event is an Event that Spillway wrote, or what an object has kept of what a user did.
type Event struct {
	At time.Time `json:"at"`
	// About is the object that it is about.
	About describe.Ref `json:"about"`
	// Ring is the one that tells it, empty if it cannot be known any more.
	Ring string `json:"ring,omitempty"`
	// Warning is true if a user may need to act.
	Warning bool `json:"warning,omitempty"`
	// Command is true of what a person did by a command.
	Command bool   `json:"command,omitempty"`
	Reason  string `json:"reason"`
	Text    string `json:"text"`
	// Changed is what had changed, of an Event that says that a workload is rolled for its config;
	// empty if that is not known any more. The Event itself has the hash alone, as wave's has.
	Changed []string `json:"changed,omitempty"`
	// Times is how often it occurred, At being the last time; 0 stands for once.
	Times int32 `json:"times,omitempty"`
}

// The names under which Spillway tells: the manager, and people's commands.
const (
	ReporterManager  = "spillway"
	ReporterCommands = "spillway-cli"
)

// Events are the Events that Spillway has written in a namespace, in all if it is
// empty, the oldest first. The API server picks them out.
func Events(ctx context.Context, reader client.Reader, namespace string) ([]Event, error) {
	var notes []Event
	for _, reporter := range Reporters() {
		list := &eventsv1.EventList{}
		if err := reader.List(ctx, list, client.InNamespace(namespace), ReportedBy(reporter)); err != nil {
			return nil, fmt.Errorf("list Events: %w", err)
		}
		for i := range list.Items {
			notes = append(notes, EventOf(&list.Items[i]))
		}
	}
	slices.SortStableFunc(notes, func(a, b Event) int { return a.At.Compare(b.At) })
	return notes, nil
}

// IsRoll is true of an Event that says to which hash a workload is rolled.
func (e *Event) IsRoll() bool { return strings.HasPrefix(e.Text, decision.ChangedNote) }

// AddChanged adds to the Event of a roll what had changed, which the workload remembers of its
// last roll. What cannot be read stays out.
func (e *Event) AddChanged(ctx context.Context, reader client.Reader) {
	if !e.IsRoll() || !slices.Contains(workloads.Kinds(), e.About.Kind) {
		return
	}
	obj := workloads.New(e.About.Kind)
	if err := reader.Get(ctx, client.ObjectKey{Namespace: e.About.Namespace, Name: e.About.Name}, obj); err != nil {
		return
	}
	roll, hash := workloads.LastRoll(obj), vocabulary.ConfigHash.Get(workloads.TemplateOf(obj).Annotations)
	if e.Text == decision.ChangedNote+hash && !e.At.Before(roll.At) {
		e.Changed = roll.Changed
	}
}

// Said is what the Event says, and what had changed rather than a hash, if that is known.
func (e *Event) Said() string {
	if len(e.Changed) > 0 {
		return "changed: " + strings.Join(e.Changed, ", ")
	}
	return e.Text
}

// Reporters are both.
func Reporters() []string { return []string{ReporterManager, ReporterCommands} }

// ReportedBy leaves of Events those that one reporter has written.
func ReportedBy(reporter string) client.ListOption {
	return client.MatchingFields{"reportingController": reporter}
}

// EventOf is what an Event says.
func EventOf(e *eventsv1.Event) Event {
	n := Event{
		At: e.EventTime.Time, Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Text: e.Note, Command: e.ReportingController == ReporterCommands,
		About: describe.Ref{Kind: e.Regarding.Kind, Namespace: e.Regarding.Namespace, Name: e.Regarding.Name},
		Ring:  ringOf(e.Action, e.Regarding.Kind),
	}
	if e.Series != nil {
		n.At, n.Times = e.Series.LastObservedTime.Time, e.Series.Count
	}
	if n.At.IsZero() {
		n.At = e.CreationTimestamp.Time
	}
	return n
}

// ringOf is the ring that does something with a kind of objects.
func ringOf(action, kind string) string {
	switch {
	case action == "Configure", slices.Contains([]string{describe.KindConfigMap, describe.KindSecret, describe.KindPolicy, describe.KindClusterPolicy}, kind):
		return describe.Config
	case action == "RunPlan" || kind == describe.KindInstance:
		return describe.Plans
	case action == "Sync" || strings.HasSuffix(kind, "Module") || strings.HasSuffix(kind, "Assemblage"):
		return describe.Fleet
	case action == "Scale" || kind == describe.KindGroup || kind == "StatefulSet":
		return describe.Zones
	default:
		return ""
	}
}

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
