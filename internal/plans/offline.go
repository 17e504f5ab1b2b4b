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
)

// Offline is the ring without a manager: the same passes, asked for one by one.
type Offline struct{ *reconciler }

// NewOffline makes the ring run upon what stands for a cluster. Nobody follows the
// objects that a plan has to do with: whoever runs it says when to look again.
func NewOffline(on kube.Offline, o Options) *Offline {
	if o.Files == nil {
		o.Files = noFiles{}
	}
	return &Offline{&reconciler{
		observer: &observer{
			options: o, instances: on, live: on, mapper: on.RESTMapper(), follower: nobody{},
			versions: lru.New(versionsKept), refusals: map[types.NamespacedName]map[Ref]Refusal{},
		},
		actor:    actor{client: on, live: on, files: o.Files, now: o.Now},
		reporter: newReporter(on.Events()),
	}}
}

// Status explains every Instance, by name, and writes nothing.
func (o *Offline) Status(ctx context.Context) ([]Explanation, error) {
	list := &v1beta1.InstanceList{}
	if err := o.observer.live.List(ctx, list); err != nil {
		return nil, err //nolint:wrapcheck // it says all
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

// nobody follows nothing.
type nobody struct{}

func (nobody) follow(context.Context, types.NamespacedName, Ref, bool) error { return nil }
func (nobody) begin(types.NamespacedName)                                    {}
func (nobody) end(types.NamespacedName)                                      {}
func (nobody) forget(types.NamespacedName)                                   {}

// errNoFiles is what a Pipe gets where there are no Pods that run.
var errNoFiles = errors.New("files of a Pod cannot be read without a cluster")

type noFiles struct{}

// Read implements [Files].
func (noFiles) Read(context.Context, string, string, string, string, int) ([]byte, error) {
	return nil, errNoFiles
}
