package write

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/plans/object"
)

// maxDrops bounds how often an object is applied without fields that its kind does not have.
// The API server may name one at a time.
const maxDrops = 50

// Known applies an object by server-side apply. Fields that its kind does not have are
// dropped, as they are in other requests, and returned.
func Known(u *unstructured.Unstructured, apply func() error) (dropped []string, err error) {
	for range maxDrops {
		if err = apply(); err == nil {
			return dropped, nil
		}
		before := len(dropped)
		for _, path := range object.UndeclaredFields(err.Error()) {
			if object.Drop(u, path) {
				dropped = append(dropped, path)
			}
		}
		if len(dropped) == before {
			return dropped, err
		}
	}
	return dropped, err
}
