package policy

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// DefaultName is the name of the policy that an installation has from the beginning.
const DefaultName = "default"

// defaultPriority lets all policies of users come before the default one, unless they ask for
// less.
const defaultPriority = -1000

// defaultSoak is how long the first workload has to stay ready: long enough for a container to
// crash twice that crashes in its first half minute.
const defaultSoak = time.Minute

// Default is the policy that an installation has from the beginning: of the workloads that use
// an object one goes first, and the others follow once it has been ready for a minute.
func Default() *v1alpha1.ClusterConfigPolicy {
	one := intstr.FromInt32(1)
	return &v1alpha1.ClusterConfigPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: ClusterKind},
		ObjectMeta: metav1.ObjectMeta{Name: DefaultName},
		Spec: v1alpha1.ClusterConfigPolicySpec{ConfigPolicySpec: v1alpha1.ConfigPolicySpec{
			Priority: defaultPriority,
			Stages:   []v1alpha1.ConfigStage{{Name: "first", Workloads: &one, Soak: &metav1.Duration{Duration: defaultSoak}}, {Name: "others"}},
		}},
	}
}

// DefaultWith is that policy with another spec, in JSON or YAML, over what it has: its stages hold
// unless the spec has some.
func DefaultWith(spec string) (*v1alpha1.ClusterConfigPolicy, error) {
	p := Default()
	if spec == "" {
		return p, nil
	}
	var given v1alpha1.ClusterConfigPolicySpec
	if err := yaml.UnmarshalStrict([]byte(spec), &given); err != nil {
		return nil, fmt.Errorf("the spec of the default policy: %w", err)
	}
	given.Priority = cmp.Or(given.Priority, p.Spec.Priority)
	if given.Stages == nil {
		given.Stages = p.Spec.Stages
	}
	p.Spec = given
	return p, nil
}
