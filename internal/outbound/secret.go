package outbound

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Secret reads the Secret that an object of a namespace refers to, from the API server itself:
// no cache holds its values.
func Secret(ctx context.Context, live client.Reader, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("the manager may not read Secret %s; bind a Role that allows to get it to the ServiceAccount of the manager", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret, nil
}
