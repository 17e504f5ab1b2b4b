package fleet

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// shownClusters is how many clusters a command names.
const shownClusters = 20

// approveRemovals lets clusters lose the module, if they are as many as the user says.
// The annotation names the clusters that the module was decided with, and is written only
// if the module is still as it was read before that.
func (a *approval) approveRemovals(ctx context.Context) error {
	module := a.named()
	var said string
	err := act.Apply(ctx, a.Client, module, func() error {
		e, err := hub.Explain(ctx, a.Client, hub.Options{Namespaces: []string{a.module.Namespace}, Now: a.Env.Now}, a.module.Kind, a.module.Key())
		if err != nil {
			return err
		}
		if said, err = a.checkRemovals(&e); err != nil {
			return err
		}
		annotate(module, vocabulary.ApproveRemoval.Native, e.Removal.Approval)
		return nil
	})
	if err != nil {
		return err
	}
	return a.done(ctx, module, module, decision.ReasonRemovalApproved, said)
}

// checkRemovals says what the user approves, or why they may not.
func (a *approval) checkRemovals(e *decision.Explanation) (string, error) {
	switch {
	case e.Removal == nil:
		return "", fmt.Errorf("%s is not to be removed from any cluster", a.module)
	case e.Removal.Approval == "" && e.Removal.Approved != "":
		return "", fmt.Errorf("%s: the removal from %d clusters is approved already", a.module, e.Removal.Clusters)
	case e.Removal.Approval == "":
		return "", fmt.Errorf("%s: the removal from %d clusters needs no approval", a.module, e.Removal.Clusters)
	case int(e.Removal.Clusters) != a.remove:
		return "", fmt.Errorf("%s is to be removed from %d clusters, not %d: %s; if that is intended: %s%d",
			a.module, e.Removal.Clusters, a.remove, losing(e), model.ApproveRemovals(a.module.Kind, a.module.Namespace, a.module.Name), e.Removal.Clusters)
	default:
		return fmt.Sprintf("%s: the removal from %d clusters is approved: %s", a.module, a.remove, losing(e)), nil
	}
}

// losing names the clusters that are to lose the module, as far as the caller may see them.
func losing(e *decision.Explanation) string {
	var names []string
	for i := range e.Clusters {
		if c := &e.Clusters[i]; c.Removed {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return "the record of the module does not name them"
	}
	if more := len(names) - shownClusters; more > 0 {
		names = append(names[:shownClusters], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func annotate(o client.Object, key, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	o.SetAnnotations(annotations)
}
