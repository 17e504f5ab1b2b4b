package manifests

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/kube"
)

// Unstructured are the objects of [Objects] as an API server wants them applied: without
// status and empty timestamps.
func Unstructured(o Options) ([]*unstructured.Unstructured, error) {
	typed, err := Objects(o)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(typed))
	for _, obj := range typed {
		u, err := kube.Manifest(obj)
		if err != nil {
			return nil, err
		}
		if rules, ok := u.Object["rules"]; ok && rules == nil {
			delete(u.Object, "rules") // of a role that is aggregated they are the API server's
		}
		objects = append(objects, u)
	}
	return objects, nil
}
