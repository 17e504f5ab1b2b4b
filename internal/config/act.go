package config

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
)

const (
	// writers is how many workloads are written at a time.
	writers = 16
	// writeTimeout bounds one write, so that a webhook of one workload that does not
	// answer does not delay the others.
	writeTimeout = 10 * time.Second
)

// result is what became of a write.
type result struct {
	write Write
	// err is nil if the write was made.
	err error
}

// act makes the writes, several at a time, and returns the result of each.
func act(ctx context.Context, w client.Writer, writes []Write) []result {
	results := make([]result, len(writes))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, write := range writes {
		group.Go(func() error {
			results[i] = result{write: write, err: apply(ctx, w, write)}
			return nil
		})
	}
	_ = group.Wait() // the errors are in the results
	return results
}

// apply makes the patches of a write in their order. The patches contain their
// preconditions, which the API server checks when it applies them.
func apply(ctx context.Context, w client.Writer, write Write) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
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
	return free(ctx, w, write)
}

// free deletes Pods that never ran, if they are as they were observed: a Pod that
// another client has released or scheduled since has another version.
func free(ctx context.Context, w client.Writer, write Write) error {
	for _, p := range write.Frees {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: write.Workload.Namespace, Name: p.Name}}
		// To see the deletion in the cache, the client would begin to cache Pods.
		err := w.Delete(ctx, pod, client.Preconditions{UID: &p.UID, ResourceVersion: &p.Version}, client.DisableReadYourWritesConsistency)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the suspended Pod %s: %w", p.Name, err)
		}
	}
	return nil
}

// isConflict is true if the write was refused because its preconditions no longer
// hold, and neither does the decision.
func isConflict(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}
