package workload

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPreview: no workload is shown that another, which is not read yet, may still come before.
func TestPreview(t *testing.T) {
	tracked := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"spillway.dev/update-on-config-change": "true"}}
	}
	for name, test := range map[string]struct {
		more    map[string]bool
		refused bool
		want    string
	}{
		"all of it":               {want: "a/DaemonSet/one a/Deployment/one a/Deployment/two a/StatefulSet/one b/StatefulSet/one"},
		"not all Deployments":     {more: map[string]bool{"Deployment": true}, want: "a/DaemonSet/one a/Deployment/one a/Deployment/two"},
		"not all StatefulSets":    {more: map[string]bool{"StatefulSet": true}, want: "a/DaemonSet/one a/Deployment/one a/Deployment/two a/StatefulSet/one b/StatefulSet/one"},
		"not all DaemonSets":      {more: map[string]bool{"DaemonSet": true, "Deployment": true}, want: "a/DaemonSet/one"},
		"one may not be listed":   {refused: true},
		"not all, and one is not": {refused: true, more: map[string]bool{"Deployment": true}},
	} {
		t.Run(name, func(t *testing.T) {
			found := Preview(func(list client.ObjectList) bool {
				more := ""
				switch l := list.(type) {
				case *appsv1.DeploymentList:
					more = "Deployment"
					l.Items = []appsv1.Deployment{{ObjectMeta: tracked("a", "one")}, {ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}}, {ObjectMeta: tracked("a", "two")}}
				case *appsv1.StatefulSetList:
					more = "StatefulSet"
					l.Items = []appsv1.StatefulSet{{ObjectMeta: tracked("a", "one")}, {ObjectMeta: tracked("b", "one")}}
				case *appsv1.DaemonSetList:
					more = "DaemonSet"
					l.Items = []appsv1.DaemonSet{{ObjectMeta: tracked("a", "one")}}
				}
				if test.more[more] {
					list.SetContinue("more")
				}
				return !test.refused || more != "DaemonSet"
			})
			var names []string
			for _, obj := range found {
				names = append(names, fmt.Sprintf("%s/%s/%s", obj.GetNamespace(), KindOf(obj), obj.GetName()))
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
