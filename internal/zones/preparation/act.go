package preparation

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// actor makes the writes.
type actor struct{ writer client.Writer }

// label sets or removes labels of a namespace that is still as it was read: nil removes one.
func (a actor) label(ctx context.Context, ns *metav1.PartialObjectMetadata, labels map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": ns.UID, "resourceVersion": ns.ResourceVersion, "labels": labels}})
	if err != nil {
		return fmt.Errorf("encode the labels: %w", err)
	}
	if err := a.writer.Patch(ctx, ns, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("label the namespace: %w", err)
	}
	log.FromContext(ctx).Info("labeled", "namespace", ns.Name, "labels", labels)
	return nil
}
