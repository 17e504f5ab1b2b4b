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
	// writeTimeout bounds one write, so that a hanging admission webhook of one
	// workload does not keep the others waiting.
	writeTimeout = 10 * time.Second
)

// outcome is what became of a write.
type outcome struct {
	write Write
	// err is nil if the write was made.
	err error
}

// act makes the writes, several at a time, and reports on each.
func act(ctx context.Context, w client.Writer, writes []Write) []outcome {
	outcomes := make([]outcome, len(writes))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, write := range writes {
		group.Go(func() error {
			outcomes[i] = outcome{write: write, err: apply(ctx, w, write)}
			return nil
		})
	}
	_ = group.Wait() // the errors are in the outcomes
	return outcomes
}

// apply makes the patches of a write in their order. The preconditions are in
// the patches: the API server checks them where it cannot be too late.
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

// free deletes Pods that have never run, as long as they are as they were seen:
// a Pod that somebody has released or scheduled meanwhile has another version.
func free(ctx context.Context, w client.Writer, write Write) error {
	for _, p := range write.Frees {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: write.Workload.Namespace, Name: p.Name}}
		// To see the deletion in the cache, the client would begin to cache Pods.
		err := w.Delete(ctx, pod, client.Preconditions{UID: &p.UID, ResourceVersion: &p.Version}, client.DisableReadYourWritesConsistency)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("free Pod %s: %w", p.Name, err)
		}
	}
	return nil
}

// overtaken is true if the write was refused because somebody was faster: its
// preconditions no longer hold, and neither does the decision.
func overtaken(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}
