package describe

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/config"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
)

// configs is what was seen of the config of workloads, which is looked at as a whole
// where they share a budget. All links of a chain share it: what they ask for is listed
// once, and what they are told is of one moment.
type configs struct {
	// everywhere lists all namespaces at once, apart each by itself.
	everywhere, apart *snapshot
}

// seeing reads for the config ring, from what was listed already.
func (a *asker) seeing(everywhere bool) *snapshot {
	c := a.configs
	if c.everywhere == nil {
		c.everywhere, c.apart = newSnapshot(a.Client, a.Client.Scheme(), ""), newSnapshot(a.Client, a.Client.Scheme(), "each")
	}
	if everywhere {
		return c.everywhere
	}
	return c.apart
}

// config is what the config ring says of a workload. Who may not look at all of those
// that share its budget is told as much as those of its namespace tell.
func (a *asker) config(ctx context.Context, name workloads.Name) (config.Explanation, error) {
	if a.Options.SharesBudget() {
		e, err := config.Explain(ctx, a.seeing(true), a.Options, name)
		if !apierrors.IsForbidden(err) {
			return e, err
		}
	}
	return config.Explain(ctx, a.seeing(false), a.Options, name)
}

// queue is how the workloads stand that share a budget with those of a namespace.
func (a *asker) queue(ctx context.Context, namespace string) ([]config.Explanation, error) {
	if a.Options.SharesBudget() {
		all, err := config.Status(ctx, a.seeing(true), a.Options, "")
		if !apierrors.IsForbidden(err) {
			return all, err
		}
	}
	return config.Status(ctx, a.seeing(false), a.Options, namespace)
}
