package lifecycle

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
)

// namespaceOf is the namespace that a package wants: what its template namespaceManifest
// makes, or one without labels. The name is the one that the user gives.
func namespaceOf(p *packages.Package, version *v1beta1.OperatorVersion, i *v1beta1.Instance) (client.Object, error) {
	manifest := p.Operator.NamespaceManifest
	if manifest == "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.Namespace}}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		return namespace, nil
	}
	text, ok := p.Templates[manifest]
	if !ok {
		return nil, fmt.Errorf("operator.yaml: namespaceManifest: template %s not found; fix the name, or add the template", manifest)
	}
	values, _ := choice.Values(&version.Spec, i.Spec.Parameters, nil) // which were checked before
	objects, err := render.Objects(manifest, text, render.Context{
		Name: i.Name, Namespace: i.Namespace, OperatorName: p.Operator.Name,
		OperatorVersion: version.Spec.Version, AppVersion: version.Spec.AppVersion, Params: values,
	}, i.Namespace)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 || object.RefOf(objects[0]).GroupKind() != object.NamespaceKind {
		return nil, fmt.Errorf("operator.yaml: namespaceManifest: template %s must be one Namespace", manifest)
	}
	objects[0].SetName(i.Namespace)
	return objects[0], nil
}

// sameText is true of two values with the same JSON.
func sameText(a, b any) bool {
	one, err := json.Marshal(a)
	if err != nil {
		return false
	}
	other, err := json.Marshal(b)
	return err == nil && string(one) == string(other)
}

// shortKind is how messages name the kind of an object.
func shortKind(obj client.Object) string {
	return strings.ToLower(obj.GetObjectKind().GroupVersionKind().Kind)
}
