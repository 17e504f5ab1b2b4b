package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// RolledKinds are those of which a ring rolls objects.
var RolledKinds = []string{workload.Deployment, workload.StatefulSet, workload.DaemonSet, "RolloutGroup", "Instance", model.KindModule, model.KindBootstrap}

// ObjectNamed is the object that a person has named as KIND/NAME, of any kind that a
// ring rolls.
func ObjectNamed(namespace, arg string) (describe.Ref, error) {
	ref, err := describe.Named(NoOtherKinds, namespace, arg)
	if err != nil || !slices.Contains(RolledKinds, ref.Kind) {
		return describe.Ref{}, fmt.Errorf("%q is not known; name it as deployment/NAME, statefulset/NAME, daemonset/NAME, rolloutgroup/NAME, instance/NAME or module/NAME", arg)
	}
	return ref, nil
}

// AtMost takes n arguments or fewer.
func AtMost(n int, action string) func(command string, args []string) error {
	return func(command string, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%s takes %s, not %d: %s", command, arguments(n), len(args), action)
		}
		return nil
	}
}

// Exactly takes n arguments; the error says what to do instead.
func Exactly(n int, action string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%s takes %s, not %d: %s", cmd.CommandPath(), arguments(n), len(args), action)
		}
		return nil
	}
}

// arguments is a number of arguments in words.
func arguments(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

// InstanceName takes a name as kubectl does, with or without the kind.
func InstanceName(arg string) string {
	if ref, ok := NamedAs(arg, "Instance"); ok {
		return ref.Name
	}
	return arg
}

// NamedAs is the object that a person has named, if it is of one of the kinds.
func NamedAs(arg string, kinds ...string) (describe.Ref, bool) {
	ref, err := describe.Named(NoOtherKinds, "", arg)
	if err != nil || !slices.Contains(kinds, ref.Kind) {
		return describe.Ref{}, false
	}
	return ref, true
}

// NoOtherKinds says that kinds which are not known here need not be looked up.
func NoOtherKinds() (apimeta.RESTMapper, error) { return nil, errors.New("no other kind is rolled") }
