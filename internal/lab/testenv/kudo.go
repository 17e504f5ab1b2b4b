package testenv

import (
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// AppliedByKUDO is an object as a plan of KUDO applies it for an Instance of a version of an operator: with the labels
// and annotations that KUDO adds, also to the Pod template of a Deployment, and with itself in an annotation.
func AppliedByKUDO(owner *v1beta1.Instance, operator, plan, version, manifest string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	labels := map[string]string{"heritage": "kudo", "kudo.dev/operator": operator, "kudo.dev/instance": owner.Name}
	u.SetNamespace(owner.Namespace)
	u.SetLabels(labels)
	annotations := map[string]string{"kudo.dev/plan": plan, "kudo.dev/phase": "main", "kudo.dev/step": "app", "kudo.dev/last-plan-execution-uid": "gone"}
	u.SetAnnotations(annotations)
	yes := true
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: owner.Name, UID: owner.UID, Controller: &yes, BlockOwnerDeletion: &yes}})
	if u.GetKind() == "Deployment" {
		of, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
		maps.Copy(of, labels)
		noted := map[string]string{vocabulary.OperatorVersionAnnotation: version, vocabulary.DependenciesHash: "d41d8cd9"}
		err := errors.Join(unstructured.SetNestedStringMap(u.Object, of, "spec", "template", "metadata", "labels"), unstructured.SetNestedStringMap(u.Object, noted, "spec", "template", "metadata", "annotations"))
		if err != nil {
			return nil, fmt.Errorf("label Pods: %w", err)
		}
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write a manifest: %w", err)
	}
	annotations[vocabulary.LastAppliedConfiguration] = string(raw)
	u.SetAnnotations(annotations)
	return u, nil
}
