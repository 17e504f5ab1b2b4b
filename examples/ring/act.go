package ring

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/ring"
)

// results are what became of a pass.
type results = ring.Results[*corev1.ConfigMap, intent]

// act permits, or makes the writes that are permitted.
func (r *reconciler) act(ctx context.Context, s *snapshot, p *plan) (done results) {
	if p.permits {
		done.Object, done.Err = r.permit(ctx, s, p)
		return done
	}
	for _, in := range p.fences {
		done.Add(in.fence(), in, r.patch(ctx, s, &in, withdrawnAnnotation, in.Version))
	}
	for _, in := range p.writes {
		done.Add(in.change(), in, r.patch(ctx, s, &in, revisionAnnotation, in.Revision))
	}
	return done
}

// permit writes the intents, if no client has written the rollout since it was read.
func (r *reconciler) permit(ctx context.Context, s *snapshot, p *plan) (*corev1.ConfigMap, error) {
	raw, err := json.Marshal(p.record)
	if err != nil {
		return nil, fmt.Errorf("encode the record: %w", err)
	}
	return ring.Update(ctx, r.client, s.object, func(c *corev1.ConfigMap) { c.Annotations[recordAnnotation] = string(raw) })
}

// patch sets an annotation of a member, if it is the one that was seen.
func (r *reconciler) patch(ctx context.Context, s *snapshot, in *intent, key, value string) error {
	patch, err := ring.MergePatch(in.UID, in.Version, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{key: value}},
	})
	if err != nil {
		return err
	}
	member := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.object.Namespace, Name: in.Name}}
	return ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		return r.client.Patch(ctx, member, patch, client.DisableReadYourWritesConsistency)
	})
}
