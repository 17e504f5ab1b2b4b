package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudov1 "github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/nearest"
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

// NotFound is the error for an object that does not exist: that its namespace does not
// exist, or which other object of its kind may have been meant.
func NotFound(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace, name string) error {
	lower, in := strings.ToLower(kind.Kind)+"/", ""
	if namespace != "" {
		if err := NamespaceMissing(ctx, reader, namespace); err != nil {
			return err
		}
		in = " in namespace " + namespace
	}
	if near := Near(ctx, reader, kind, namespace, name); near != "" {
		return fmt.Errorf("%s not found%s; did you mean %s?", lower+name, in, lower+near)
	}
	switch others := elsewhere(ctx, reader, kind, namespace, name); len(others) {
	case 0:
	case 1:
		return fmt.Errorf("%s not found%s; it is in namespace %s: name that with -n", lower+name, in, others[0])
	default:
		return fmt.Errorf("%s not found%s; namespaces %s have one: name one with -n", lower+name, in, strings.Join(others, ", "))
	}
	if kind.GroupKind() == kudov1.GroupVersion.WithKind(describe.KindInstance).GroupKind() {
		in += "; to see all: spillway package get instances -n " + namespace
	}
	return fmt.Errorf("%s not found%s", lower+name, in)
}

// Missing is an error if an object that a person has named surely does not exist. What may not
// be read may exist, and so may what is of a kind that is not known here.
func Missing(ctx context.Context, reader client.Reader, ref describe.Ref) error {
	kind, known := describe.KindNamed(ref.Kind)
	if !known {
		return nil
	}
	obj := kube.Metadata(kind)
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, obj); {
	case apimeta.IsNoMatchError(err):
		return NotInstalled(ref.String(), ref.Kind)
	case apierrors.IsNotFound(err):
		return NotFound(ctx, reader, kind, ref.Namespace, ref.Name)
	default:
		return nil
	}
}

// NotInstalled is the error for an object of one of Spillway's own kinds that the cluster does
// not have.
func NotInstalled(what, kind string) error {
	return fmt.Errorf("%s: the kind is not installed; install it with: %s", what, describe.Installs(kind))
}

// mostNamespaces is how many namespaces are named in which an object is instead.
const mostNamespaces = 3

// elsewhere are the first namespaces with an object of that name, as far as they may be seen.
func elsewhere(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace, name string) []string {
	if namespace == "" {
		return nil
	}
	all := kube.MetadataList(kind)
	_ = reader.List(ctx, all, client.MatchingFields{"metadata.name": name}) // without them there is nothing to suggest
	var in []string
	for i := range all.Items {
		if o := all.Items[i]; o.Name == name && o.Namespace != namespace {
			in = append(in, o.Namespace)
		}
	}
	slices.Sort(in)
	return in[:min(len(in), mostNamespaces)]
}

// Near is the name of the object of a kind that a person may have mistyped, "" if there is
// none or it may not be seen.
func Near(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace, name string) string {
	all := kube.MetadataList(kind)
	_ = reader.List(ctx, all, client.InNamespace(namespace)) // without them there is nothing to suggest
	known := make([]string, 0, len(all.Items))
	for i := range all.Items {
		known = append(known, all.Items[i].Name)
	}
	return nearest.Meant(name, known)
}

// WithName are the objects of a name, of all kinds that a ring rolls or that it rolls workloads
// for, as far as they may be seen.
func WithName(ctx context.Context, reader client.Reader, namespace, name string) []string {
	var found []string
	for _, of := range append(slices.Clone(RolledKinds), describe.KindConfigMap, describe.KindSecret) {
		kind, _ := describe.KindNamed(of)
		obj := kube.Metadata(kind)
		if reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj) == nil {
			found = append(found, strings.ToLower(kind.Kind)+"/"+name)
		}
	}
	return found
}

// ErrBothNamespaces is that one namespace was named, and all.
var ErrBothNamespaces = errors.New("-n and -A contradict each other; leave one out")

// NamespaceMissing returns an error that says so if a namespace is surely not found. What
// may not be looked at may exist.
func NamespaceMissing(ctx context.Context, reader client.Reader, name string) error {
	namespaces := corev1.SchemeGroupVersion.WithKind("Namespace")
	found := kube.Metadata(namespaces)
	err := reader.Get(ctx, client.ObjectKey{Name: name}, found)
	if isAnswer := !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse); !apierrors.IsNotFound(err) || !isAnswer {
		return nil
	}
	if near := Near(ctx, reader, namespaces, "", name); near != "" {
		return fmt.Errorf("namespace %s not found; did you mean %s?", name, near)
	}
	return fmt.Errorf("namespace %s not found; name another with -n", name)
}
