package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/rollout"
)

// manager asks whether a manager is at work that looks at a namespace. It is asked
// where something waits for nothing else.
func (a *asker) manager(namespace string) *question {
	ref := Ref{Kind: kindManager, Name: "spillway"}
	return &question{asker: a, ref: ref, answer: func(ctx context.Context, _ bool) (answer, error) { return a.manages(ctx, ref, namespace) }}
}

func (a *asker) manages(ctx context.Context, ref Ref, namespace string) (answer, error) {
	var list appsv1.DeploymentList
	if err := a.Client.List(ctx, &list, client.MatchingLabels(manifests.ManagerLabels())); err != nil {
		return answer{}, fmt.Errorf("list the Deployments of the manager: %w", err)
	}
	if len(list.Items) == 0 {
		link := a.link(ref, ReasonManagerDown, "it is the manager's turn, and no manager is installed here; one that runs elsewhere cannot be seen")
		link.Next = a.pointless("spillway check")
		return answer{links: []Link{link}}, nil
	}
	i := slices.IndexFunc(list.Items, func(d appsv1.Deployment) bool { return looksAt(argsOf(&d), namespace) })
	if i < 0 {
		d := refTo(workloads.Deployment, &list.Items[0])
		link := a.link(ref, ReasonManagerDown, "it is the manager's turn, and no manager looks at namespace %s", namespace)
		link.Next = a.kubectl("edit", d)
		return answer{links: []Link{link}}, nil
	}
	return a.atWork(ctx, &list.Items[i])
}

func argsOf(d *appsv1.Deployment) []string {
	var args []string
	for _, c := range d.Spec.Template.Spec.Containers {
		args = append(args, c.Args...)
	}
	return args
}

// argOf is the value of an argument, the last of several.
func argOf(args []string, name, otherwise string) string {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			otherwise = value
		}
	}
	return otherwise
}

// looksAt is true if a manager with these arguments looks at a namespace.
func looksAt(args []string, namespace string) bool {
	watched := argOf(args, "namespaces", "")
	return watched == "" || slices.Contains(strings.Split(watched, ","), namespace)
}

// atWork tells by its Lease whether a manager is at work, and without one by its Pods.
func (a *asker) atWork(ctx context.Context, d *appsv1.Deployment) (answer, error) {
	w := makerOf(d)
	args := argsOf(d)
	down := a.downBecause(&w)
	if argOf(args, "leader-elect", "true") == "false" {
		if d.Status.ReadyReplicas == 0 {
			return answer{links: []Link{a.managerDown(w.ref(), "no replica of the manager is ready")}, on: down}, nil
		}
		return answer{links: []Link{a.managerUp(w.ref())}}, nil
	}
	ref := Ref{
		Kind: kindLease, Namespace: argOf(args, "leader-elect-namespace", d.Namespace), Name: argOf(args, "leader-elect-id", manager.LeaseName),
	}
	lease := &coordinationv1.Lease{}
	err := a.get(ctx, ref, lease)
	switch {
	case isNotFound(err):
		return answer{links: []Link{a.managerDown(ref, "no manager has ever held Lease "+ref.Name)}, on: down}, nil
	case err != nil:
		return answer{}, err
	case a.isFresh(lease):
		return answer{links: []Link{a.managerUp(w.ref())}}, nil
	}
	link := a.managerDown(ref, a.abandoned(lease))
	if at := lease.Spec.RenewTime; at != nil {
		link.Since = momentOrNil(at.Time)
	}
	return answer{links: []Link{link}, on: down}, nil
}

// managerGone is the answer that a manager which is installed here is not at work, nil
// if it is, or if that cannot be known.
func (a *asker) managerGone(ctx context.Context, namespace string) *answer {
	down, err := a.manages(ctx, Ref{Kind: kindManager, Name: "spillway"}, namespace)
	if err != nil || down.links[0].Kind == kindManager || down.links[0].Reason != ReasonManagerDown {
		return nil
	}
	return &down
}

// downBecause goes on to why the Pods of the manager do not run, nil if they do.
func (a *asker) downBecause(w *maker) *question {
	if w.wants > 0 && w.isHealthy() {
		return nil
	}
	if w.wants > 0 {
		return a.podsUnder(w)
	}
	return &question{asker: a, ref: w.ref(), answer: func(context.Context, bool) (answer, error) {
		link := a.link(w.ref(), ReasonManagerDown, "%s is scaled to 0 replicas", w.name())
		link.Next = a.kubectl("scale", w.ref(), "--replicas=2")
		return answer{links: []Link{link}}, nil
	}}
}

// podsUnder asks about the Pods of a workload that was told of already.
func (a *asker) podsUnder(w *maker) *question {
	return &question{asker: a, ref: w.ref(), answer: func(ctx context.Context, _ bool) (answer, error) {
		return a.unready(ctx, w, a.link(w.ref(), "", "%s is as its template says", w.name()))
	}}
}

func (a *asker) managerDown(ref Ref, why string) Link {
	link := a.link(ref, ReasonManagerDown, "no manager is at work: %s", why)
	link.Next = a.pointless("kubectl get pods -A -l app.kubernetes.io/name=spillway,app.kubernetes.io/component=manager")
	return link
}

func (a *asker) managerUp(ref Ref) Link {
	link := a.link(ref, rollout.ReasonProgressing, "the manager is at work, and this is its next step")
	link.Phase = rollout.PhaseProgressing
	return link
}

// isFresh is true if somebody holds the Lease, and has renewed it in time.
func (a *asker) isFresh(lease *coordinationv1.Lease) bool {
	s := &lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return false
	}
	return a.Options.Now().Before(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second))
}

func (a *asker) abandoned(lease *coordinationv1.Lease) string {
	s := &lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" {
		return "nobody holds Lease " + lease.Name
	}
	if s.RenewTime == nil {
		return "nobody has renewed Lease " + lease.Name
	}
	return fmt.Sprintf("%s holds Lease %s, and has not renewed it since %s", *s.HolderIdentity, lease.Name, rollout.Clock(s.RenewTime.Time))
}
