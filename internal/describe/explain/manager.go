package explain

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
	"github.com/spillway-dev/spillway/internal/describe/explain/native"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/rollout"
)

// aboutManager asks whether a manager runs that watches a namespace.
func (a *asker) aboutManager(namespace string) *chain.Question {
	ref := describe.Ref{Kind: describe.KindManager, Name: "spillway"}
	return a.Ask(ref, func(ctx context.Context, _ bool) (chain.Answer, error) { return a.manages(ctx, ref, namespace) })
}

// managerGone is the answer that a manager which is installed does not run, nil
// if it is, or if that cannot be known.
func (a *asker) managerGone(ctx context.Context, namespace string) *chain.Answer {
	down, err := a.manages(ctx, describe.Ref{Kind: describe.KindManager, Name: "spillway"}, namespace)
	if err != nil || down.Links[0].Kind == describe.KindManager || down.Links[0].Reason != chain.ReasonManagerDown {
		return nil
	}
	return &down
}

func (a *asker) manages(ctx context.Context, ref describe.Ref, namespace string) (chain.Answer, error) {
	var list appsv1.DeploymentList
	if err := a.Client.List(ctx, &list, client.MatchingLabels(manifests.ManagerLabels())); err != nil {
		return chain.Answer{}, fmt.Errorf("list the Deployments of the manager: %w", err)
	}
	if len(list.Items) == 0 {
		link := a.Link(ref, chain.ReasonManagerDown, "waiting for the manager: none is installed in this cluster; explain cannot see one that runs elsewhere")
		link.Next = a.Command("spillway check")
		return chain.Answer{Links: []chain.Link{link}}, nil
	}
	i := slices.IndexFunc(list.Items, func(d appsv1.Deployment) bool { return manifests.ArgumentsOf(&d).Watches(namespace) })
	if i < 0 {
		d := describe.RefTo(workloads.Deployment, &list.Items[0])
		link := a.Link(ref, chain.ReasonManagerDown, "waiting for the manager: none watches namespace %s", namespace)
		link.Next = a.Kubectl("edit", d)
		return chain.Answer{Links: []chain.Link{link}}, nil
	}
	return a.atWork(ctx, &list.Items[i])
}

// atWork reads from its Lease whether a manager runs, and without one by its Pods.
func (a *asker) atWork(ctx context.Context, d *appsv1.Deployment) (chain.Answer, error) {
	w := native.WorkloadOf(d)
	args := manifests.ArgumentsOf(d)
	down := a.downBecause(&w)
	if args.Value("leader-elect", "true") == "false" {
		if d.Status.ReadyReplicas == 0 {
			return chain.Answer{Links: []chain.Link{a.managerDown(w.Ref(), "no replica of the manager is ready")}, Then: down}, nil
		}
		return chain.Answer{Links: []chain.Link{a.managerUp(w.Ref())}}, nil
	}
	ref := describe.Ref{
		Kind: describe.KindLease, Namespace: args.Value("leader-elect-namespace", d.Namespace), Name: args.Value("leader-elect-id", manager.LeaseName),
	}
	lease := &coordinationv1.Lease{}
	err := a.Get(ctx, ref, lease)
	switch {
	case chain.IsNotFound(err):
		return chain.Answer{Links: []chain.Link{a.managerDown(ref, "no manager has ever held Lease "+ref.Name)}, Then: down}, nil
	case err != nil:
		return chain.Answer{}, err
	case manager.IsLed(lease, a.Options.Now()):
		return chain.Answer{Links: []chain.Link{a.managerUp(w.Ref())}}, nil
	}
	link := a.managerDown(ref, a.abandoned(lease))
	if at := lease.Spec.RenewTime; at != nil {
		link.Since = describe.TimeOrNil(at.Time)
	}
	return chain.Answer{Links: []chain.Link{link}, Then: down}, nil
}

// downBecause goes on to why the Pods of the manager do not run, nil if they do.
func (a *asker) downBecause(w *native.Workload) *chain.Question {
	if w.Wants > 0 && w.IsHealthy() {
		return nil
	}
	if w.Wants > 0 {
		return a.podsUnder(w)
	}
	return a.Ask(w.Ref(), func(context.Context, bool) (chain.Answer, error) {
		link := a.Link(w.Ref(), chain.ReasonManagerDown, "%s is scaled to 0 replicas", w.Name())
		link.Next = a.Kubectl("scale", w.Ref(), "--replicas=2")
		return chain.Answer{Links: []chain.Link{link}}, nil
	})
}

// podsUnder asks about the Pods of a workload that has a link already.
func (a *asker) podsUnder(w *native.Workload) *chain.Question {
	return a.Ask(w.Ref(), func(ctx context.Context, _ bool) (chain.Answer, error) {
		return a.Unready(ctx, w, a.Link(w.Ref(), "", "%s is ready", w.Name()))
	})
}

func (a *asker) managerDown(ref describe.Ref, why string) chain.Link {
	link := a.Link(ref, chain.ReasonManagerDown, "no manager is running: %s", why)
	link.Next = a.Command("kubectl get pods -A -l app.kubernetes.io/name=spillway,app.kubernetes.io/component=manager")
	return link
}

func (a *asker) managerUp(ref describe.Ref) chain.Link {
	link := a.Link(ref, rollout.ReasonProgressing, "the manager is running, and processes it next")
	link.Phase = rollout.PhaseProgressing
	return link
}

func (a *asker) abandoned(lease *coordinationv1.Lease) string {
	s := &lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" {
		return "Lease " + lease.Name + " has no holder"
	}
	if s.RenewTime == nil {
		return "Lease " + lease.Name + " was never renewed"
	}
	return fmt.Sprintf("%s holds Lease %s, and has not renewed it since %s", *s.HolderIdentity, lease.Name, rollout.Clock(s.RenewTime.Time))
}

// annotator is who has last written an annotation, by the name under which they wrote.
func annotator(obj metav1.Object, key string) string {
	field := []byte(`"f:` + key + `"`)
	for _, entry := range obj.GetManagedFields() {
		if entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), field) {
			return entry.Manager
		}
	}
	return ""
}

// kept continues with what keeps an object that is being deleted: a finalizer of another
// controller, or else the manager.
func (a *asker) kept(ref describe.Ref, obj client.Object, own string, so chain.Answer) chain.Answer {
	for _, name := range obj.GetFinalizers() {
		if name != own {
			so.Links = append(so.Links, a.Finalizer(ref, name))
			return so
		}
	}
	so.Then = a.Manager(ref.Namespace)
	return so
}
