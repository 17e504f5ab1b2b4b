package manifests

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Arguments are those that an installed manager runs with.
type Arguments []string

// ArgumentsOf returns the arguments of the containers of a manager's Deployment.
func ArgumentsOf(d *appsv1.Deployment) Arguments {
	var args Arguments
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		args = append(args, c.Args...)
		if namespace := reloadersNamespace(d.Namespace, c); namespace != "" && args.Value("reloader-annotations", "") == "true" && args.Value("namespaces", "") == "" {
			args = append(args, "--namespaces="+namespace)
		}
	}
	return args
}

// reloadersNamespace is the namespace that a container is given as Reloader is, empty if it is given none.
func reloadersNamespace(own string, c *corev1.Container) string {
	for _, e := range c.Env {
		if e.Name == vocabulary.ReloaderNamespace && e.ValueFrom != nil {
			return own // by a reference to that of its Pod
		}
		if e.Name == vocabulary.ReloaderNamespace {
			return e.Value
		}
	}
	return ""
}

// LeaseOf is the Lease by which the replicas of a manager elect a leader.
func LeaseOf(d *appsv1.Deployment) client.ObjectKey {
	args := ArgumentsOf(d)
	return client.ObjectKey{Namespace: args.Value("leader-elect-namespace", d.Namespace), Name: args.Value("leader-elect-id", manager.LeaseName)}
}

// OwnArguments are those that follow from the options, without the ones that are passed on.
func OwnArguments(o Options) (Arguments, error) {
	o.Values.Args = nil
	objects, err := o.render("deployment")
	if err != nil {
		return nil, err
	}
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, d); err != nil {
		return nil, fmt.Errorf("read the Deployment: %w", err)
	}
	return ArgumentsOf(d)[1:], nil // the first names the command
}

// Value is what a flag is set to, the last of several; one without a value is true.
func (a Arguments) Value(name, otherwise string) string {
	for _, arg := range a {
		switch value, ok := strings.CutPrefix(arg, "--"+name+"="); {
		case ok:
			otherwise = value
		case arg == "--"+name:
			otherwise = "true"
		}
	}
	return otherwise
}

// Rings are those that the manager runs.
func (a Arguments) Rings() []string { return a.list("rings", manager.Rings()) }

// Namespaces are those that the manager watches, all if there are none.
func (a Arguments) Namespaces() []string { return a.list("namespaces", nil) }

// PinNamespaces are those where workloads may keep the config of each revision; none by arguments that
// no manager starts with.
func (a Arguments) PinNamespaces() pin.Namespaces {
	n, err := pin.Flags{Names: a.list("pin-namespaces", nil), Selector: a.Value("pin-namespace-selector", ""), Watched: a.Namespaces(), WatchedBy: "--namespaces"}.Namespaces()
	if err != nil {
		return pin.Namespaces{}
	}
	return n
}

// PinBy is what points Pods at the config of their revision.
func (a Arguments) PinBy() pin.By { return pin.By(a.Value("pin-by", string(pin.ByPolicy))) }

// Watches is true if the manager watches a namespace.
func (a Arguments) Watches(namespace string) bool {
	watched := a.Namespaces()
	return len(watched) == 0 || slices.Contains(watched, namespace)
}

func (a Arguments) list(name string, otherwise []string) []string {
	if value := a.Value(name, ""); value != "" {
		return strings.Split(value, ",")
	}
	return otherwise
}
