package manifests

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/manager"
)

// pinRole is the name of the Roles in namespaces where workloads keep the config of their
// revisions.
const pinRole = name + "-pins"

// PinRules are the permissions that it takes there, beside those of the config ring: to write
// and to collect snapshots, and to watch what refers to them.
func PinRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{verbCreate, "delete"}},
		{APIGroups: []string{"apps"}, Resources: []string{"replicasets", "controllerrevisions"}, Verbs: []string{verbList, verbWatch}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{verbList, verbWatch, "patch"}},
	}
}

// pinObjects are the permissions in namespaces with pins, and the policy that applies pins.
func (o Options) pinObjects() []client.Object {
	if len(o.PinNamespaces) == 0 {
		return nil
	}
	var objects []client.Object
	for _, namespace := range o.PinNamespaces {
		objects = append(objects, namespacedRole(o, namespace, pinRole, PinRules()), roleBinding(o, namespace, pinRole))
	}
	if o.PinBy == pin.ByWebhook { // see Declarations
		return objects
	}
	return append(objects, o.policies(manager.RingConfig, pin.Policy(o.PinNamespaces))...)
}

// Validate says what is wrong with the options, by the names of their flags.
func (o Options) Validate() error {
	if err := o.validatePins(); err != nil {
		return err
	}
	if o.Dashboard.Enabled && o.Dashboard.Replicas < 1 {
		return errors.New("dashboard.replicas: must be at least 1; to have no dashboard, set dashboard.enabled to false")
	}
	return o.Admission.Validate()
}

// validatePins says what is wrong with the namespaces with pins, by the name of the flag.
func (o Options) validatePins() error {
	switch {
	case !slices.Contains([]pin.By{"", pin.ByPolicy, pin.ByWebhook}, o.PinBy):
		return fmt.Errorf("--pin-by: %q is not known; use %s or %s", o.PinBy, pin.ByPolicy, pin.ByWebhook)
	case o.PinBy == pin.ByWebhook && len(o.PinNamespaces) > 0 && o.Admission.Off:
		return errors.New("--pin-by: webhook needs the webhooks of the rings; leave --webhooks=false out, or use policy")
	}
	if len(o.PinNamespaces) > 0 && !slices.Contains(o.Rings, manager.RingConfig) {
		return fmt.Errorf("--pin-namespaces: pins are of the ring %s; add it to --rings", manager.RingConfig)
	}
	for _, namespace := range o.PinNamespaces {
		if len(o.Watch) > 0 && !slices.Contains(o.Watch, namespace) {
			return fmt.Errorf("--pin-namespaces: the manager does not watch namespace %s; add it to --watch-namespaces=%s", namespace, strings.Join(o.Watch, ","))
		}
	}
	return nil
}
