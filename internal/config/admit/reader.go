package admit

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=localsubjectaccessreviews,verbs=create

// reader is the user who makes a request. A hash says something about what was hashed: so
// nothing is hashed in an answer to her that she may not read.
type reader struct {
	writer client.Writer
	user   authenticationv1.UserInfo
}

// question is what a user may be allowed to read: an object, or all of a kind with no name.
type question struct {
	kind            content.Kind
	namespace, name string
}

// mayRead is true if she may read all of these. What cannot be found out she may not.
func (r reader) mayRead(ctx context.Context, refs []content.Reference) bool {
	names := map[question][]string{}
	for _, ref := range refs {
		all := question{kind: ref.Object.Kind, namespace: ref.Object.Namespace}
		names[all] = append(names[all], ref.Object.Name)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(content.Readers)
	for all, named := range names {
		group.Go(func() error { return r.mayReadNamed(ctx, all, named) })
	}
	return group.Wait() == nil
}

// mayReadNamed asks about all objects of a kind first: nearly everyone who may read one may
// read these.
func (r reader) mayReadNamed(ctx context.Context, all question, names []string) error {
	if r.ask(ctx, all) == nil {
		return nil
	}
	for _, name := range names {
		one := all
		one.name = name
		if err := r.ask(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// errRefused says that the user may not read something, or that it is not known.
var errRefused = errors.New("may not be read")

func (r reader) ask(ctx context.Context, q question) error {
	attributes := &authorizationv1.ResourceAttributes{Namespace: q.namespace, Name: q.name, Verb: "get", Version: "v1", Resource: "configmaps"}
	switch q.kind {
	case content.Secret:
		attributes.Resource = "secrets"
	case content.SecretProviderClass:
		attributes.Group, attributes.Resource = content.ProviderGroup, "secretproviderclasses"
	case content.ConfigMap:
	}
	review := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: q.namespace}}
	review.Spec = authorizationv1.SubjectAccessReviewSpec{
		User: r.user.Username, UID: r.user.UID, Groups: r.user.Groups, ResourceAttributes: attributes,
		Extra: map[string]authorizationv1.ExtraValue{},
	}
	for key, values := range r.user.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err := r.writer.Create(ctx, review, client.DisableReadYourWritesConsistency); err != nil { //nolint:forbidigo // it is a question, and stores nothing
		log.FromContext(ctx).V(1).Info("it is not known what the user may read", "reason", err.Error())
		return errRefused
	}
	if !review.Status.Allowed {
		return errRefused
	}
	return nil
}
