package argo

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// act makes the write of a plan, of a Rollout as it was read: the restart and its record are one request.
func (r *restarter) act(ctx context.Context, o *observed, p *plan) error {
	if p.record == "" {
		return nil
	}
	change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{vocabulary.ConfigSeen.Native: p.record}}}
	if !p.restartAt.IsZero() {
		change["spec"] = map[string]any{"restartAt": p.restartAt.UTC().Format(time.RFC3339)}
	}
	read := o.rollout
	merge, err := ring.MergePatch(read.UID, read.ResourceVersion, change)
	if err != nil {
		return err
	}
	return ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		written := &workload.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: read.Namespace, Name: read.Name}}
		if err := r.writer.Patch(ctx, written, merge, client.FieldOwner(kube.FieldOwner)); err != nil {
			return fmt.Errorf("patch %s: %w", read.Name, err)
		}
		return nil
	})
}
