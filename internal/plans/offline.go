package plans

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/account"
	"github.com/spillway-dev/spillway/internal/watch"
)

// Offline is the ring without a manager: the caller makes it reconcile.
type Offline struct{ *reconciler }

// NewOffline makes the ring run on a substitute for a cluster. It watches nothing: the
// caller says when to reconcile.
func NewOffline(on kube.Offline, o Options) *Offline {
	if o.Files == nil {
		o.Files = noFiles{}
	}
	return &Offline{&reconciler{
		observer: &observer{
			options: o, instances: on, live: on, mapper: on.RESTMapper(), follower: watchless{},
			accounts: func(account.Account) (account.Rights, error) { // nothing refuses anything
				return account.Rights{Client: on, Live: on, Files: o.Files}, nil
			},
			versions: lru.New(versionsKept),
		},
		actor:    actor{client: on, live: on, now: o.Now},
		reporter: newReporter(on.Events()),
	}}
}

// Status explains every Instance, by name, and writes nothing.
func (o *Offline) Status(ctx context.Context) ([]Explanation, error) {
	list := &v1beta1.InstanceList{}
	if err := o.observer.live.List(ctx, list); err != nil {
		return nil, err //nolint:wrapcheck // the error of the client says all
	}
	explanations := make([]Explanation, 0, len(list.Items))
	for i := range list.Items {
		explanations = append(explanations, ExplanationOf(&list.Items[i]))
	}
	slices.SortFunc(explanations, func(a, b Explanation) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return explanations, nil
}

// watchless is a [follower] that watches nothing.
type watchless struct{}

// Follow implements follower.
func (watchless) Follow(context.Context, types.NamespacedName, watch.Object, bool) error { return nil }

// FollowAs implements follower.
func (watchless) FollowAs(context.Context, types.NamespacedName, watch.Object, bool, watch.Identity) (bool, error) {
	return true, nil
}

// Shows implements follower.
func (watchless) Shows(context.Context, watch.Object, bool, types.UID, string) bool {
	return false
}

// Begin implements follower.
func (watchless) Begin(types.NamespacedName) {}

// End implements follower.
func (watchless) End(types.NamespacedName) {}

// Forget implements follower.
func (watchless) Forget(types.NamespacedName) {}

// errNoFiles is the error of a Pipe where no Pods run.
var errNoFiles = errors.New("files of a Pod cannot be read without a cluster")

type noFiles struct{}

// Read implements [pipe.Files].
func (noFiles) Read(context.Context, string, string, string, string, int) ([]byte, error) {
	return nil, errNoFiles
}
