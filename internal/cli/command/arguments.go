package command

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// RolledKinds are the kinds of which a ring rolls objects. ReleasingKinds say how config is released: what is released,
// and the policies.
var (
	RolledKinds    = []string{workload.Deployment, workload.StatefulSet, workload.DaemonSet, describe.KindGroup, describe.KindInstance, model.KindModule, model.KindBootstrap}
	ReleasingKinds = []string{describe.KindConfigMap, describe.KindSecret, describe.KindPolicy, describe.KindClusterPolicy}
)

// ObjectNamed is the object that a person has named as KIND/NAME, of any kind that a
// ring rolls.
func ObjectNamed(namespace, arg string) (describe.Ref, error) {
	if err := describe.NoKind(arg); err != nil {
		return describe.Ref{}, err
	}
	ref, err := describe.Named(NoOtherKinds, namespace, arg)
	if err != nil || !slices.Contains(RolledKinds, ref.Kind) {
		return describe.Ref{}, fmt.Errorf("%q is not known; name it as deployment/NAME, statefulset/NAME, daemonset/NAME, rolloutgroup/NAME, instance/NAME or module/NAME", arg)
	}
	return ref, nil
}

// ReleaseNamed is also a ConfigMap, a Secret or a policy, by which the releases of config are
// named.
func ReleaseNamed(namespace, arg string) (describe.Ref, error) {
	ref, ok := NamedAs(arg, ReleasingKinds...)
	if !ok {
		return ObjectNamed(namespace, arg)
	}
	if ref.Kind != describe.KindClusterPolicy {
		ref.Namespace = namespace
	}
	return ref, nil
}

// AtMost takes n arguments or fewer; the error says what to do instead.
func AtMost(n int, action string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%s takes %s, not %d: %s", cmd.CommandPath(), arguments(n), len(args), cmp.Or(apart(cmd, args), action))
		}
		return nil
	}
}

// Exactly takes n arguments; the error says what to do instead.
func Exactly(n int, action string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%s takes %s, not %d: %s", cmd.CommandPath(), arguments(n), len(args), cmp.Or(apart(cmd, args), action))
		}
		return nil
	}
}

// apart is the question of a command that takes KIND/NAME, and was given them as two words.
func apart(cmd *cobra.Command, args []string) string {
	if len(args) != 2 || !strings.Contains(cmd.Use, "KIND/NAME") || strings.Contains(args[0]+args[1], "/") {
		return ""
	}
	return fmt.Sprintf("did you mean %s/%s?", args[0], args[1])
}

// None takes no arguments; the error says what to do instead.
func None(action string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s takes no arguments, and %q is one: %s", cmd.CommandPath(), args[0], action)
		}
		return nil
	}
}

// AfterDash takes no arguments but those after --; the error says what to do instead.
func AfterDash(action string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() == 0 {
			return nil
		}
		return None(action)(cmd, args)
	}
}

// AtLeast takes n arguments or more; the error says what to do instead.
func AtLeast(n int, action string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return fmt.Errorf("%s takes at least %s, not %d: %s", cmd.CommandPath(), arguments(n), len(args), action)
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

// Instance takes a name as kubectl does, with or without the kind, and no other kind.
func Instance(arg string) (string, error) {
	name := InstanceName(arg)
	if name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("%q is not an Instance; name it as NAME or instance/NAME", arg)
	}
	return name, nil
}

// CheckWait refuses a time to wait that has no effect.
func CheckWait(wait bool, timeout time.Duration) error {
	switch {
	case timeout < 0:
		return fmt.Errorf("--timeout: %s is negative; use 0 for no limit", timeout)
	case timeout > 0 && !wait:
		return errors.New("--timeout: nothing is waited for without --wait; add it, or leave out both")
	default:
		return nil
	}
}

// Wanted is the object that a person has named, of one of the kinds. The error says what cannot be
// done with another one, such as "pause", and instead.
func Wanted(verb, arg string, kinds []string, instead string) (describe.Ref, error) {
	if err := describe.NoKind(arg); err != nil {
		return describe.Ref{}, err
	}
	ref, ok := NamedAs(arg, kinds...)
	if !ok {
		return ref, fmt.Errorf("cannot %s %q: %s", verb, arg, cmp.Or(instead, "name one of "+strings.Join(kinds, ", ")+" as KIND/NAME"))
	}
	return ref, nil
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

// CheckNamespaces is an error for what cannot be the name of a namespace.
func CheckNamespaces(flag string, names ...string) error {
	for _, name := range names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("--%s: %q cannot be a namespace; use lower-case letters, digits and -", flag, name)
		}
	}
	return nil
}

// CheckName is an error for what cannot be the name of an object; nothing is its default.
func CheckName(flag, name string) error {
	if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("--%s: %q cannot be a name; use lower-case letters, digits, - and dots", flag, name)
	}
	return nil
}

// CheckAddress is an error for what cannot be an address to listen at; "0" disables it.
func CheckAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil && address != "0" && address != "" {
		return fmt.Errorf("--%s: %q is not an address to listen at; write it as :8080 or 127.0.0.1:8080", flag, address)
	}
	return nil
}
