package ask

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// WriteEnd says of a gate during a unit that this is over, if no client has decided it meanwhile.
func (g *Gate) WriteEnd(ctx context.Context, w client.Writer, namespace string, at time.Time, options ...client.PatchOption) error {
	patch, err := ring.MergePatch(g.UID, g.ResourceVersion, map[string]any{"spec": map[string]any{"endedAt": metav1.NewMicroTime(at)}})
	if err != nil {
		return err
	}
	object := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: g.Name}}
	return w.Patch(ctx, object, patch, append(options, client.FieldOwner(kube.FieldOwner))...) //nolint:wrapcheck // the caller does
}
