package cli

import (
	"errors"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
)

// rolledKinds are those of which a ring rolls objects.
var rolledKinds = []string{workload.Deployment, workload.StatefulSet, workload.DaemonSet, "RolloutGroup", "Instance", hub.KindModule, hub.KindBootstrap}

// objectNamed is the object that a person has named as KIND/NAME, of any kind that a
// ring rolls.
func objectNamed(namespace, arg string) (describe.Ref, error) {
	ref, err := describe.Named(noOtherKinds, namespace, arg)
	if err != nil || !slices.Contains(rolledKinds, ref.Kind) {
		return describe.Ref{}, fmt.Errorf("%q is not known; name it as deployment/NAME, statefulset/NAME, daemonset/NAME, rolloutgroup/NAME, instance/NAME or module/NAME", arg)
	}
	return ref, nil
}

// namedAs is the object that a person has named, if it is of one of the kinds.
func namedAs(arg string, kinds ...string) (describe.Ref, bool) {
	ref, err := describe.Named(noOtherKinds, "", arg)
	if err != nil || !slices.Contains(kinds, ref.Kind) {
		return describe.Ref{}, false
	}
	return ref, true
}

// noOtherKinds says that kinds which are not known here need not be looked up.
func noOtherKinds() (apimeta.RESTMapper, error) { return nil, errors.New("no other kind is rolled") }

// atMost takes n arguments or fewer.
func atMost(n int, action string) func(command string, args []string) error {
	return func(command string, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%s takes %d argument, not %d: %s", command, n, len(args), action)
		}
		return nil
	}
}
