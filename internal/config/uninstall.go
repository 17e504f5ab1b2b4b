package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// releaseEvery is how often [Release] observes its progress.
const releaseEvery = 200 * time.Millisecond

// Release lets every suspended workload be scheduled whether its config exists or
// not, because the manager is about to be removed. It reports each workload once,
// and returns when none is left, or when the context ends.
func Release(ctx context.Context, c client.Client, o Options, report func(workload.Name)) error {
	reported := map[workload.Name]bool{}
	var last error
	err := wait.PollUntilContextCancel(ctx, releaseEvery, true, func(ctx context.Context) (bool, error) {
		left, results, err := releaseOnce(ctx, c, o)
		if err != nil {
			return false, err
		}
		for _, r := range results {
			switch name := r.Write.Workload.Name; {
			case r.Err != nil:
				last = r.Err
			case !reported[name] && r.Write.Rolls:
				reported[name] = true
				report(name)
			}
		}
		return left == 0, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w (last: %w)", err, last)
	}
	return err //nolint:wrapcheck // says what it is
}

// releaseOnce is one pass of the ring as if no workload were tracked any more.
// It returns how many are still suspended.
func releaseOnce(ctx context.Context, c client.Client, o Options) (int, results, error) {
	observer := newObserver(o, c, content.Source{Values: c})
	objects, err := workload.List(ctx, c, observer.namespaces())
	if err != nil {
		return 0, nil, err
	}
	p, observed := &pass{observer: observer, now: o.Now()}, decision.Observed{Now: o.Now()}
	var failed error
	for _, obj := range objects {
		e := &entry{workload: workload.Read(obj)}
		e.workload.Settings.Tracked = false
		failed = errors.Join(failed, p.observeWaiting(ctx, e))
		if w := e.snapshot(nil); !w.Suspension.IsSettled() || w.IsMarkedInVain() {
			observed.Workloads = append(observed.Workloads, w)
		}
	}
	return len(observed.Workloads), act(ctx, c, decision.Decide(observed, decision.Options{}).Writes), failed
}

// Trace is a workload that is suspended, or on which wave left something.
type Trace struct {
	workload.Name
	workload.Legacy

	Suspension workload.Suspension
	// LeftOut says which extra objects of other namespaces do not count.
	LeftOut []string
}

// Suspended is true if new Pods of the workload cannot be scheduled, or old ones
// are still suspended.
func (t Trace) Suspended() bool { return t.Suspension.IsSuspended() || t.Suspension.Freeing }

// Traces lists the workloads that are suspended, those on which wave left something that
// the manager removes, and those that name objects of other namespaces that they may not use.
func Traces(ctx context.Context, reader client.Reader) ([]Trace, error) {
	objects, err := workload.List(ctx, reader, []string{""})
	if err != nil {
		return nil, err
	}
	var traces []Trace
	source := content.Source{Digests: content.Digesting(reader)}
	lookup, p := source.Lookup(), &pass{observer: newObserver(Options{}, reader, source)}
	for _, obj := range objects {
		w := workload.Read(obj)
		var leftOut []string
		if w.Settings.Tracked {
			leftOut = lookup.LeftOut(ctx, w.Namespace, w.Settings.Extra)
		}
		_ = p.observeOwned(ctx, &w) // as far as it may be seen
		if w.Legacy.Finalizer || w.Suspension.IsSuspended() || w.Suspension.Freeing || len(leftOut) > 0 {
			traces = append(traces, Trace{Name: w.Name, Legacy: w.Legacy, Suspension: w.Suspension, LeftOut: leftOut})
		}
	}
	return traces, nil
}
