package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// releaseEvery is how often [Release] looks how far it is.
const releaseEvery = 200 * time.Millisecond

// Release lets every suspended workload be scheduled whether its config exists
// or not, because nobody will be there to do it: the manager is about to go. It
// tells of each workload once, and returns when none is left, or when the
// context ends.
func Release(ctx context.Context, c client.Client, o Options, tell func(Name)) error {
	told := map[Name]bool{}
	var last error
	err := wait.PollUntilContextCancel(ctx, releaseEvery, true, func(ctx context.Context) (bool, error) {
		left, outcomes, err := releaseOnce(ctx, c, o)
		if err != nil {
			return false, err
		}
		for _, out := range outcomes {
			switch name := out.write.Workload.Name; {
			case out.err != nil:
				last = out.err
			case !told[name] && out.write.Rolls:
				told[name] = true
				tell(name)
			}
		}
		return left == 0, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w (last: %w)", err, last)
	}
	return err //nolint:wrapcheck // says of itself what it is
}

// releaseOnce is one pass of the ring as if no workload were tracked any more.
// It returns how many are still suspended.
func releaseOnce(ctx context.Context, c client.Client, o Options) (int, []outcome, error) {
	observer := observer{options: o, workloads: c, values: c, memory: memory{}}
	objects, err := observer.list(ctx)
	if err != nil {
		return 0, nil, err
	}
	p, observed := &pass{observer: &observer, now: o.Now()}, Observed{Now: o.Now()}
	var failed error
	for _, obj := range objects {
		r := &recollection{}
		r.learn(obj)
		r.settings.Tracked = false
		p.lookForWaiting(ctx, r)
		if w := r.workload(); !w.Suspension.settled() || w.overmarked() {
			observed.Workloads = append(observed.Workloads, w)
		}
		if r.retry != nil {
			failed = errors.Join(failed, errors.New(r.retry.Reason))
		}
	}
	return len(observed.Workloads), act(ctx, c, decide(observed, Options{}).Writes), failed
}
