package plans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// releaseEvery is how often [Release] looks how far it is.
const releaseEvery = 200 * time.Millisecond

// Held are the Instances that nobody but a manager of the ring lets go: those that
// have to be cleaned up before. In no namespaces are all of them.
func Held(ctx context.Context, reader client.Reader, namespaces []string) ([]types.NamespacedName, error) {
	instances, err := held(ctx, reader, namespaces)
	var names []types.NamespacedName
	for i := range instances {
		names = append(names, client.ObjectKeyFromObject(&instances[i]))
	}
	return names, err
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
			return nil, nil // nobody has ever installed the ring
		}
		if err != nil {
			return nil, notFound(err, "list Instances")
		}
		all = append(all, list.Items...)
	}
	return slices.DeleteFunc(all, func(i v1beta1.Instance) bool { return !slices.Contains(i.Finalizers, vocabulary.CleanupFinalizer) }), nil
}

// Release lets every Instance go without its cleanup plan, because nobody will be
// there to run it: the manager is about to go. It tells of each Instance, and
// returns when none is held, or when the context ends.
func Release(ctx context.Context, c client.Client, namespaces []string, tell func(types.NamespacedName)) error {
	err := wait.PollUntilContextCancel(ctx, releaseEvery, true, func(ctx context.Context) (bool, error) {
		instances, err := held(ctx, c, namespaces)
		if err != nil {
			return false, err
		}
		for i := range instances {
			switch err := (actor{client: c}).change(ctx, &instances[i], Write{Act: RemoveFinalizer}); {
			case errors.Is(err, errOvertaken): // the next look sees who was faster
			case err != nil:
				return false, fmt.Errorf("release Instance %s: %w", client.ObjectKeyFromObject(&instances[i]), err)
			default:
				tell(client.ObjectKeyFromObject(&instances[i]))
			}
		}
		return len(instances) == 0, nil
	})
	return err //nolint:wrapcheck // says of itself what it is
}
