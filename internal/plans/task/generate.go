package task

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// generated are the keys of a Secret that need a random value, with its length.
func generated(u, live *unstructured.Unstructured) (map[string]int, error) {
	value := vocabulary.GenerateOnce.Get(u.GetAnnotations())
	if value == "" || u.GroupVersionKind().GroupKind() != object.SecretKind {
		return nil, nil //nolint:nilnil // nothing to generate is a valid answer
	}
	existing := map[string]any{}
	if live != nil {
		existing, _, _ = unstructured.NestedMap(live.Object, "data")
	}
	keys := map[string]int{}
	for entry := range strings.SplitSeq(value, ",") {
		key, length, _ := strings.Cut(strings.TrimSpace(entry), "=")
		n, err := strconv.Atoi(strings.TrimSpace(length))
		if err != nil || n < 1 || n > 1024 || key == "" {
			return nil, fmt.Errorf("Secret %s: annotation %s must be keys with lengths from 1 to 1024 such as %q", //nolint:staticcheck // a kind
				u.GetName(), vocabulary.GenerateOnce.Native, "password=32, token=16")
		}
		if _, ok := existing[key]; !ok {
			keys[key] = n
		}
	}
	return keys, nil
}
