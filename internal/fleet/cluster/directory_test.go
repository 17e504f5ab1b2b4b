package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of two labelled Secrets one stands for a cluster at most: the one that is named as the
// Secret of a cluster is.
func TestASecretStandsForTheClusterThatItsNameSays(t *testing.T) {
	labelled := func(name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{"spillway.dev/cluster": "true"}}}
	}
	secrets := []metav1.PartialObjectMetadata{labelled("a"), labelled("a-kubeconfig"), labelled("b"), labelled("-kubeconfig")}
	if all := among(nil, secrets); len(all) != 1 || all[0].Name != "a" || all[0].Secret() != "a-kubeconfig" {
		t.Errorf("%+v", all)
	}
}
