package lifecycle

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

// An Instance keeps its reference to a version that another namespace shares, so that a
// comparison with it is no upgrade; another version is one of its own namespace.
func TestProposeKeepsASharedVersion(t *testing.T) {
	plans := map[string]v1beta1.Plan{v1beta1.DeployPlan: {}, v1beta1.UpgradePlan: {}}
	version := func(namespace, name string) *choice.Version {
		return choice.NewVersion(&v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1beta1.OperatorVersionSpec{Plans: plans}})
	}
	shared := version("kafka", "kafka-1")
	for _, test := range []struct {
		next      *choice.Version
		plan      string
		namespace string
	}{
		{shared, "", "kafka"},
		{version("shop", "kafka-1"), v1beta1.UpgradePlan, ""},
		{version("shop", "kafka-2"), v1beta1.UpgradePlan, ""},
	} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		i.Spec.OperatorVersion = v1beta1.ObjectReference{Namespace: "kafka", Name: "kafka-1"}
		i.Status.LastAppliedInstanceSpec = i.Spec.DeepCopy()
		chosen, err := (&upgrade{}).propose(i, shared, test.next)
		if err != nil {
			t.Fatal(err)
		}
		if chosen.Plan != test.plan || i.Spec.OperatorVersion.Namespace != test.namespace {
			t.Errorf("for %s/%s plan %q runs with %v", test.next.Namespace, test.next.Name, chosen.Plan, i.Spec.OperatorVersion)
		}
	}
}
