package plans

import (
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// releaseEvery is how often [Release] lists the Instances.
const releaseEvery = 200 * time.Millisecond

// Held are the Instances that only a manager of the ring can let be deleted: those that
// must be cleaned up before. No namespaces means all.
func Held(ctx context.Context, reader client.Reader, namespaces []string) ([]types.NamespacedName, error) {
	instances, err := held(ctx, reader, namespaces)
	var names []types.NamespacedName
	for i := range instances {
		names = append(names, client.ObjectKeyFromObject(&instances[i]))
	}
	return names, err
}

// Release removes the finalizer of every Instance without running its cleanup plan,
// because the manager that would run it is being uninstalled. It reports each Instance,
// and returns when none is held, or when the context ends.
func Release(ctx context.Context, c client.Client, namespaces []string, report func(types.NamespacedName)) error {
	err := wait.PollUntilContextCancel(ctx, releaseEvery, true, func(ctx context.Context) (bool, error) {
		instances, err := held(ctx, c, namespaces)
		if err != nil {
			return false, err
		}
		for i := range instances {
			switch err := (actor{client: c}).change(ctx, &instances[i], write.Write{Act: write.RemoveFinalizer}); {
			case ring.IsConflict(err): // the next list has what was written meanwhile
			case err != nil:
				return false, fmt.Errorf("release Instance %s: %w", client.ObjectKeyFromObject(&instances[i]), err)
			default:
				report(client.ObjectKeyFromObject(&instances[i]))
			}
		}
		return len(instances) == 0, nil
	})
	return err //nolint:wrapcheck // the error says what failed
}

func held(ctx context.Context, reader client.Reader, namespaces []string) ([]v1beta1.Instance, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all []v1beta1.Instance
	for _, namespace := range namespaces {
		list := &v1beta1.InstanceList{}
		err := reader.List(ctx, list, client.InNamespace(namespace))
		if apimeta.IsNoMatchError(err) {
			return nil, nil // the ring was never installed
		}
		if err != nil {
			return nil, ignoreNotFound(err, "list Instances")
		}
		all = append(all, list.Items...)
	}
	return slices.DeleteFunc(all, func(i v1beta1.Instance) bool { return !slices.Contains(i.Finalizers, vocabulary.CleanupFinalizer) }), nil
}
