package object

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/kube"
)

// TestRetired checks that what is to be used instead is known to the client, and that no
// version that a current API server serves is called retired.
func TestRetired(t *testing.T) {
	outside := map[string]bool{"apiextensions.k8s.io/v1": true, "apiregistration.k8s.io/v1": true} // libraries of their own
	for _, r := range retired {
		kinds := r.kinds
		if kinds == nil {
			kinds = []string{"Any"}
		}
		for _, kind := range kinds {
			from, err := schema.ParseGroupVersion(r.from)
			if err != nil {
				t.Fatal(err)
			}
			to, isRetired := Successor(from.WithKind(kind))
			if !isRetired || to.String() != r.to {
				t.Errorf("%s %s: use %q, %v", r.from, kind, to, isRetired)
			}
			if _, again := Successor(to.WithKind(kind)); again {
				t.Errorf("%s is itself retired", to)
			}
			known := kube.Served().IsVersionRegistered(to) && (kind == "Any" || kube.Served().Recognizes(to.WithKind(kind)))
			if r.to != "" && !outside[r.to] && !known {
				t.Errorf("%s has no kind %s", to, kind)
			}
		}
	}
}

func TestRetiredAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"policy/v1beta1 PodDisruptionBudget":             "API version policy/v1beta1 is no longer served; use policy/v1",
		"policy/v1beta1 PodSecurityPolicy":               "Kubernetes no longer has kind PodSecurityPolicy; remove it",
		"extensions/v1beta1 Ingress":                     "API version extensions/v1beta1 is no longer served; use networking.k8s.io/v1",
		"policy/v1 PodDisruptionBudget":                  "",
		"example.com/v1beta1 Thing":                      "",
		"admissionregistration.k8s.io/v1beta1 Something": "",
	} {
		var gv, kind string
		for i, r := range text {
			if r == ' ' {
				gv, kind = text[:i], text[i+1:]
			}
		}
		parsed, err := schema.ParseGroupVersion(gv)
		if err != nil {
			t.Fatal(err)
		}
		if got := RetiredAdvice(parsed.WithKind(kind)); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}
