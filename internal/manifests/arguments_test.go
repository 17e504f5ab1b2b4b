package manifests_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/manifests"
)

// What a manager watches that is given Reloader's environment is known from its Deployment.
func TestTheNamespaceOfReloaderIsWatched(t *testing.T) {
	t.Parallel()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "own"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: "KUBERNETES_NAMESPACE", Value: "shop"}}}}
	c := &d.Spec.Template.Spec.Containers[0]
	watches := func(want string, args ...string) {
		t.Helper()
		c.Args = args
		if got := fmt.Sprint(manifests.ArgumentsOf(d).Namespaces()); got != want {
			t.Errorf("%v: %s, want %s", args, got, want)
		}
	}
	watches("[]")
	watches("[shop]", "--reloader-annotations")
	watches("[a]", "--reloader-annotations", "--namespaces=a")
	c.Env[0] = corev1.EnvVar{Name: "KUBERNETES_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}
	watches("[own]", "--reloader-annotations")
}
