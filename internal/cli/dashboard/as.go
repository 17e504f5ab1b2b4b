package dashboard

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	kudov1beta1 "github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/dashboard"
	"github.com/spillway-dev/spillway/internal/dashboard/hosted"
	"github.com/spillway-dev/spillway/internal/kube"
)

// tried is how many namespaces a person is asked about at most.
const tried = 50

// shown are kinds of which a person sees a namespace if she may list one of them there.
var shown = []schema.GroupResource{
	{Group: "apps", Resource: "deployments"}, {Group: "apps", Resource: "statefulsets"},
	{Group: kudov1beta1.GroupVersion.Group, Resource: "instances"}, {Group: fleetv1alpha1.GroupVersion.Group, Resource: "modules"},
}

// open reads a namespace, all if it is empty, as a person.
func (h *hosting) open(ctx context.Context, who hosted.Person, namespace string) (*dashboard.Source, error) {
	r := reader{Query: h.asGiven()}
	if err := r.Cluster.ActAs(who.User, who.Groups); err != nil {
		return nil, err
	}
	var err error
	if r.live, r.rules, err = r.Connect(ctx, namespace); err != nil {
		return nil, err
	}
	if err := r.watch(ctx, namespace); err != nil {
		return nil, err
	}
	source := r.source()
	if h.steering {
		source.Steering = r.person()
	}
	return &source, nil
}

// asGiven returns the flags as they were given: what one person may see of the manager's Deployment
// must not change what others see.
func (h *hosting) asGiven() *command.Query {
	cmd := &cobra.Command{}
	q := command.NewUnprinted(h.Env, cmd)
	h.given.Visit(func(f *pflag.Flag) {
		mine := cmd.Flags().Lookup(f.Name)
		if mine == nil {
			return
		}
		mine.Changed = true
		from, several := f.Value.(pflag.SliceValue)
		to, _ := mine.Value.(pflag.SliceValue)
		if several && to != nil {
			_ = to.Replace(from.GetSlice()) // it was accepted before
			return
		}
		_ = mine.Value.Set(f.Value.String()) // the same
	})
	return q
}

// namespaces are those that a person may see, of those that she may list or that are offered:
// the API server does not say which ones a user may see.
func (h *hosting) namespaces(ctx context.Context, who hosted.Person) ([]string, error) {
	q := h.asGiven()
	if err := q.Cluster.ActAs(who.User, who.Groups); err != nil {
		return nil, err
	}
	c, err := q.Cluster.Client()
	if err != nil {
		return nil, err
	}
	names := slices.Clone(h.offered)
	list := kube.MetadataList(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := c.List(ctx, list, client.Limit(tried)); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list namespaces as %s: %w", who.User, err)
	}
	for i := range list.Items {
		if !slices.Contains(h.offered, list.Items[i].Name) {
			names = append(names, list.Items[i].Name)
		}
	}
	var found []string
	for _, name := range names[:min(len(names), tried)] {
		ok, err := mayList(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// mayList is true if a person may list something of a namespace that the pages show.
func mayList(ctx context.Context, c client.Client, namespace string) (bool, error) {
	for _, of := range shown {
		ok, err := change.May(ctx, c, &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Group: of.Group, Resource: of.Resource})
		if err != nil {
			return false, fmt.Errorf("ask what may be seen in namespace %s: %w", namespace, err)
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}
