package check

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// What a manager needs at its most, in KiB, as measured: docs/measurements.md. The program itself, with the
// contents that it hashes at a time, and each object that a ring keeps.
const programKiB = 96 << 10

var keptKiB = map[string]map[schema.GroupVersionKind]int64{
	manager.RingConfig: {
		{Group: "apps", Version: "v1", Kind: "Deployment"}: 40, {Group: "apps", Version: "v1", Kind: "StatefulSet"}: 40, {Group: "apps", Version: "v1", Kind: "DaemonSet"}: 40,
		{Version: "v1", Kind: "ConfigMap"}: 4, {Version: "v1", Kind: "Secret"}: 4,
	},
	manager.RingZones: {{Group: "apps", Version: "v1", Kind: "StatefulSet"}: 40, {Version: "v1", Kind: "Pod"}: 4},
	manager.RingFleet: {clusterGVK: 160, cluster.GVK: 160},
	manager.RingPlans: {{Group: "kudo.dev", Version: "v1beta1", Kind: "Instance"}: 50},
}

// clusterGVK stands for the clusters that are known by a labeled Secret. They are counted apart from other Secrets.
var clusterGVK = schema.GroupVersionKind{Kind: "cluster"}

// checkMemory compares the limit of the manager's memory with what this many objects take.
func (i *installation) checkMemory(ctx context.Context, c client.Reader) finding {
	limit := i.memoryLimit()
	if limit == nil {
		return finding{OK: true, What: "memory has no limit"}
	}
	need, clusters, err := i.memoryNeeded(ctx, c)
	if err != nil {
		return unread("the memory that the manager needs", err)
	}
	f := finding{OK: limit.Cmp(need) >= 0, What: fmt.Sprintf("memory is limited to %s, and the objects here need at most about %s", limit, &need)}
	if clusters > 0 {
		f.What += fmt.Sprintf(" (clusters among them: %d)", clusters)
	}
	if !f.OK {
		f.Advice, f.Action = true, fmt.Sprintf("set the value resources.limits.memory to %s", &need)
	}
	return f
}

func (i *installation) memoryLimit() *resource.Quantity {
	containers := i.deployment.Spec.Template.Spec.Containers
	n := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "manager" })
	if n < 0 || containers[n].Resources.Limits.Memory().IsZero() {
		return nil
	}
	return containers[n].Resources.Limits.Memory()
}

// memoryNeeded counts what the rings of the manager keep, and the clusters among that.
func (i *installation) memoryNeeded(ctx context.Context, c client.Reader) (need resource.Quantity, clusters int64, err error) {
	cost := map[schema.GroupVersionKind]int64{}
	for _, ring := range i.args.Rings() {
		for kind, each := range keptKiB[ring] {
			cost[kind] = max(cost[kind], each)
		}
	}
	total := int64(programKiB)
	for kind, each := range cost {
		for _, namespace := range kube.OrAll(i.args.Namespaces()) {
			n, err := count(ctx, c, kind, namespace)
			if err != nil {
				return need, 0, err
			}
			if total += n * each; kind == clusterGVK || kind == cluster.GVK {
				clusters += n
			}
		}
	}
	const step = 32 << 10 // a limit that can be read
	return *resource.NewQuantity((total+step-1)/step*step<<10, resource.BinarySI), clusters, nil
}

// count is how many objects of a kind a namespace has, in one small answer.
func count(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, namespace string) (int64, error) {
	if kind == clusterGVK {
		return countClusters(ctx, c, namespace)
	}
	list := kube.MetadataList(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
		if apimeta.IsNoMatchError(err) {
			return 0, nil
		}
		return 0, fmt.Errorf("count %ss: %w", kind.Kind, err)
	}
	n := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		n += *list.RemainingItemCount
	}
	return n, nil
}

// countClusters is how many clusters a namespace has by a labeled Secret, page by page: of what is selected an API server
// does not say how many more there are.
func countClusters(ctx context.Context, c client.Reader, namespace string) (n int64, err error) {
	for next := ""; ; {
		list := kube.MetadataList(cluster.SecretGVK.GroupVersion().WithKind("SecretList"))
		options := []client.ListOption{client.InNamespace(namespace), client.Limit(page), client.Continue(next), client.MatchingLabels{vocabulary.Cluster.Native: "true"}}
		if err := c.List(ctx, list, options...); err != nil {
			return 0, fmt.Errorf("count clusters: %w", err)
		}
		n += int64(len(list.Items))
		if next = list.Continue; next == "" {
			return n, nil
		}
	}
}
