package explain

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/shell"
)

// refused is what the API server has refused to show.
type refused struct {
	// resource is as in "deployments", group as in "apps".
	resource, group string
	// name is empty if a list of them was asked for, everywhere if it was one of all
	// namespaces.
	name       string
	everywhere bool
}

// refusedIn is what an error says of what was refused, nil if it says nothing of that.
func refusedIn(err error) *refused {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return nil
	}
	d := status.Status().Details
	if d == nil || d.Kind == "" {
		return nil
	}
	return &refused{resource: d.Kind, group: d.Group, name: d.Name, everywhere: strings.Contains(status.Status().Message, "at the cluster scope")}
}

// isOf is true if it is this very object.
func (r *refused) isOf(ref describe.Ref) bool {
	return r.name == ref.Name && strings.HasPrefix(r.resource, strings.ToLower(ref.Kind))
}

// String is how a sentence calls it.
func (r *refused) String() string { return strings.TrimSpace(r.resource + " " + r.name) }

// get is the command that asks for it.
func (r *refused) get(namespace string) string {
	what := r.resource
	if r.group != "" {
		what += "." + r.group
	}
	if r.name != "" {
		what += "/" + r.name
	}
	what = shell.Quote(what)
	switch {
	case r.everywhere && r.name == "":
		return "kubectl get " + what + " -A"
	case r.everywhere || namespace == "":
		return "kubectl get " + what
	default:
		return "kubectl get " + what + " -n " + shell.Quote(namespace)
	}
}
