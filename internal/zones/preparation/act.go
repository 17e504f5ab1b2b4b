package preparation

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// actor makes the writes.
type actor struct{ writer client.Writer }

// label sets or removes the label of a namespace that is still as it was read.
func (a actor) label(ctx context.Context, ns *metav1.PartialObjectMetadata, needed bool) error {
	value := "null"
	if needed {
		value = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q,"labels":{%q:%s}}}`, ns.UID, ns.ResourceVersion, vocabulary.PreparesScales.Native, value)
	if err := a.writer.Patch(ctx, ns, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("label the namespace: %w", err)
	}
	log.FromContext(ctx).Info("labeled", "namespace", ns.Name, vocabulary.PreparesScales.Native, needed)
	return nil
}
