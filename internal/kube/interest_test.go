package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
)

func labeled(label string) kube.Interest {
	return kube.Interest{Object: &appsv1.Deployment{}, Sees: func(o client.Object) bool { return o.GetLabels()[label] != "" }}
}

func deployment(labels map[string]string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "2", Generation: 3, Labels: labels}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
	return d
}

func TestTheCacheKeepsWholeWhatAnyRingWants(t *testing.T) {
	transform := kube.Transform([]kube.Interest{labeled("a"), labeled("b")})
	for name, test := range map[string]struct {
		labels map[string]string
		whole  bool
	}{
		"no ring":  {map[string]string{"c": "1"}, false},
		"the one":  {map[string]string{"a": "1"}, true},
		"another":  {map[string]string{"b": "1"}, true},
		"no label": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := deployment(test.labels)
			if !test.whole {
				want = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "2", Generation: 3}}
			}
			in := deployment(test.labels)
			in.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
			for range 2 { // a transform may meet an object that it has met before
				got, err := transform(in)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				in = got.(*appsv1.Deployment)
			}
		})
	}
}
