package config

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// writers is how many workloads are written at a time.
const writers = 16

// results are what became of the writes of a pass.
type results []ring.Result[decision.Write]

// unrecorded are workloads that must not be rolled, because how they are before could not be recorded.
type unrecorded struct {
	workloads []workload.Name
	err       error
}

// actRecorded makes the writes, but for the rolls of these.
func (r *reconciler) actRecorded(ctx context.Context, p *decision.Plan, held []unrecorded) results {
	var done results
	possible := *p
	for _, h := range held {
		isHeld := func(w decision.Write) bool { return w.Rolls && slices.Contains(h.workloads, w.Workload.Name) }
		for _, write := range possible.Writes {
			if isHeld(write) {
				done = append(done, ring.Result[decision.Write]{Change: write.Change(), Write: write, Err: h.err})
			}
		}
		possible.Writes = slices.DeleteFunc(slices.Clone(possible.Writes), isHeld)
	}
	return append(done, r.actPinned(ctx, &possible)...)
}

// actPinned writes the snapshots that some writes pin workloads to, and makes the writes of
// which all snapshots exist.
func (r *reconciler) actPinned(ctx context.Context, p *decision.Plan) results {
	needed := snapshotsOf(p.Writes)
	if len(needed) == 0 || r.snapshots == nil {
		return actWithin(ctx, r.observer.budget, r.writer, p)
	}
	var done results
	r.snapshots.While(func() {
		failed, possible := r.snapshots.Ensure(ctx, needed), *p
		possible.Writes = nil
		for _, write := range p.Writes {
			if err := firstOf(failed, &write); err != nil {
				done = append(done, ring.Result[decision.Write]{Change: write.Change(), Write: write, Err: unmade{err}})
				continue
			}
			possible.Writes = append(possible.Writes, write)
		}
		done = append(done, actWithin(ctx, r.observer.budget, r.writer, &possible)...)
	})
	return done
}

// unmade is the error of a write that certainly was not made.
type unmade struct{ error }

// Unwrap implements the interface of package errors.
func (u unmade) Unwrap() error { return u.error }

// snapshotsOf are those that writes need, each once.
func snapshotsOf(writes []decision.Write) []snapshots.Key {
	seen := map[snapshots.Key]bool{}
	var keys []snapshots.Key
	for i := range writes {
		for _, p := range writes[i].Pins {
			if key := (snapshots.Key{Namespace: writes[i].Workload.Namespace, Pin: p}); p.HasSnapshot() && !seen[key] {
				seen[key], keys = true, append(keys, key)
			}
		}
	}
	return keys
}

// firstOf is why a write cannot be made.
func firstOf(failed map[snapshots.Key]error, write *decision.Write) error {
	for _, p := range write.Pins {
		if err := failed[snapshots.Key{Namespace: write.Workload.Namespace, Pin: p}]; err != nil {
			return err
		}
	}
	return nil
}

// actWithin records what is rolled, and makes the writes. Without the record nothing is
// rolled.
func actWithin(ctx context.Context, b *budget, w client.Writer, p *decision.Plan) results {
	err := b.record(ctx, p)
	if err == nil {
		return act(ctx, w, p.Writes)
	}
	var others []decision.Write
	var done results
	for _, write := range p.Writes {
		if write.Rolls {
			done = append(done, ring.Result[decision.Write]{Change: write.Change(), Write: write, Err: err})
			continue
		}
		others = append(others, write)
	}
	return append(done, act(ctx, w, others)...)
}

// writeLease creates the Lease, or updates it if no other manager has since it was read.
func writeLease(ctx context.Context, w client.Writer, lease *coordinationv1.Lease) error {
	return ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		if lease.ResourceVersion == "" {
			return w.Create(ctx, lease, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
		}
		return w.Update(ctx, lease, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	})
}

// createPolicy creates a policy, unless there is one of its name.
func createPolicy(ctx context.Context, w client.Writer, p *v1alpha1.ClusterConfigPolicy) (created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, ring.WriteTimeout)
	defer cancel()
	err = w.Create(ctx, p, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	switch {
	case apierrors.IsAlreadyExists(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("create %s %s: %w", policy.ClusterKind, p.Name, err)
	default:
		return true, nil
	}
}

// applyGate creates a RolloutGate, of which the name follows from what it asks, or changes or
// deletes one as it was observed.
func applyGate(ctx context.Context, w client.Writer, write *decision.GateWrite, now time.Time) error {
	return ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		switch {
		case write.Create != nil:
			return w.Create(ctx, write.Create.Object(write.Namespace, now), client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
		case write.End != nil:
			return write.End.WriteEnd(ctx, w, write.Namespace, now, client.DisableReadYourWritesConsistency)
		}
		gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: write.Namespace, Name: write.Delete.Name}}
		return w.Delete(ctx, gate, ring.Preconditions(write.Delete.UID, write.Delete.ResourceVersion), client.DisableReadYourWritesConsistency)
	})
}

// writeRecord creates the record of what has failed with an object, or changes or deletes it as it was
// observed.
func writeRecord(ctx context.Context, w client.Writer, write *decision.RecordWrite) error {
	return ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		before, after := write.Before, write.After
		switch {
		case before == nil:
			return w.Create(ctx, after.DeepCopy(), client.FieldOwner(kube.FieldOwner))
		case after == nil:
			return w.Delete(ctx, before.DeepCopy(), ring.Preconditions(before.UID, before.ResourceVersion))
		}
		r := after.DeepCopy()
		r.TypeMeta, r.ObjectMeta = before.TypeMeta, *before.ObjectMeta.DeepCopy()
		return w.Update(ctx, r, client.FieldOwner(kube.FieldOwner))
	})
}

// act makes the writes, several at a time.
func act(ctx context.Context, w client.Writer, writes []decision.Write) results {
	done := make(results, len(writes))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, write := range writes {
		group.Go(func() error {
			done[i] = ring.Result[decision.Write]{Change: write.Change(), Write: write, Err: apply(ctx, w, write)}
			return nil
		})
	}
	_ = group.Wait() // the errors are in the results
	return done
}

// apply makes the patches of a write in their order. The patches contain their
// preconditions, which the API server checks when it applies them.
func apply(ctx context.Context, w client.Writer, write decision.Write) error {
	ctx, cancel := context.WithTimeout(ctx, ring.WriteTimeout)
	defer cancel()
	for _, p := range write.Patches {
		raw, err := json.Marshal(p.Operations)
		if err != nil {
			return fmt.Errorf("encode patch: %w", err)
		}
		err = w.Patch(ctx, p.Object, client.RawPatch(types.JSONPatchType, raw), client.FieldOwner(kube.FieldOwner))
		if err != nil {
			return fmt.Errorf("patch %s: %w", p.Object.GetName(), err)
		}
	}
	return remove(ctx, w, write)
}

// remove deletes Pods that never ran, or were never ready, if they are as they were observed: a
// Pod that another client has released or scheduled since, or that is ready, has another version.
func remove(ctx context.Context, w client.Writer, write decision.Write) error {
	for _, p := range write.Deletes {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: write.Workload.Namespace, Name: p.Name}}
		// To see the deletion in the cache, the client would begin to cache Pods.
		err := w.Delete(ctx, pod, ring.Preconditions(p.UID, p.Version), client.DisableReadYourWritesConsistency)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete Pod %s: %w", p.Name, err)
		}
	}
	return nil
}
