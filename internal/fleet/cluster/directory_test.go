package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of two labeled Secrets one at most registers a cluster: the one that has the name of
// the Secret of a cluster.
func TestASecretStandsForTheClusterThatItsNameSays(t *testing.T) {
	labeled := func(name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{"spillway.dev/cluster": "true"}}}
	}
	secrets := []metav1.PartialObjectMetadata{labeled("a"), labeled("a-kubeconfig"), labeled("b"), labeled("-kubeconfig")}
	if all := among(nil, secrets); len(all) != 1 || all[0].Name != "a" || all[0].Secret() != "a-kubeconfig" {
		t.Errorf("%+v", all)
	}
}
