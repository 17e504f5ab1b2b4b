package describe

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/rollout"
)

// Manager is what can be seen of the manager of a namespace.
type Manager struct {
	// Deployment is that of the manager, the first one if none watches the namespace, nil if
	// none is installed.
	Deployment *appsv1.Deployment
	// Watches is true if the manager watches the namespace.
	Watches bool
	// Ref is what shows whether it runs: its Lease or its Deployment.
	Ref Ref
	// Down is why it does not run, empty if it does, if none is installed, and until [Manager.Look] was
	// called; Since is since when, if that is known.
	Down  string
	Since *time.Time
	// Until is when it may be otherwise though no object of a rollout has changed, by the duration of the
	// Lease; zero if that is not known.
	Until time.Time
}

// Absence says why nothing is carried out in the namespace, empty if something is.
func (m *Manager) Absence(namespace string) string {
	switch {
	case m.Deployment == nil:
		return "none is installed in this cluster; one that runs elsewhere cannot be seen"
	case !m.Watches:
		return "none watches namespace " + namespace
	default:
		return m.Down
	}
}

// lookAgain is when it is worth to look again where the Lease cannot be read.
const lookAgain = time.Minute

// ManagerOf returns the manager of a namespace. Whether it runs, [Manager.Look] finds out.
func ManagerOf(ctx context.Context, r client.Reader, namespace string) (Manager, error) {
	var list appsv1.DeploymentList
	if err := r.List(ctx, &list, client.MatchingLabels(manifests.ManagerLabels())); err != nil {
		return Manager{}, fmt.Errorf("list the Deployments of the manager: %w", err)
	}
	if len(list.Items) == 0 {
		return Manager{}, nil
	}
	i := slices.IndexFunc(list.Items, func(d appsv1.Deployment) bool { return manifests.ArgumentsOf(&d).Watches(namespace) })
	m := Manager{Deployment: &list.Items[max(0, i)], Watches: i >= 0}
	m.Ref = RefTo(workload.Deployment, m.Deployment)
	return m, nil
}

// Look finds out whether the manager of the namespace runs: from its Lease, and without one from its Pods.
func (m *Manager) Look(ctx context.Context, r client.Reader, now time.Time) error {
	if !m.Watches {
		return nil
	}
	if manifests.ArgumentsOf(m.Deployment).Value("leader-elect", "true") == "false" {
		if m.Deployment.Status.ReadyReplicas == 0 {
			m.Down = "no replica of the manager is ready"
		}
		return nil
	}
	key, lease := manifests.LeaseOf(m.Deployment), &coordinationv1.Lease{}
	ref := Ref{Kind: KindLease, Namespace: key.Namespace, Name: key.Name}
	err := r.Get(ctx, key, lease)
	if d := lease.Spec.LeaseDurationSeconds; d != nil {
		m.Until = now.Add(time.Duration(*d) * time.Second)
	}
	switch {
	case apierrors.IsNotFound(err):
		m.Ref, m.Down = ref, "no manager has ever held Lease "+ref.Name
	case err != nil:
		m.Until = now.Add(lookAgain)
		return fmt.Errorf("get Lease %s: %w", ref.Name, err)
	case !manager.IsLed(lease, now):
		m.Ref, m.Down = ref, abandoned(lease)
		if at := lease.Spec.RenewTime; at != nil {
			m.Since = TimeOrNil(at.Time)
		}
	}
	return nil
}

func abandoned(lease *coordinationv1.Lease) string {
	s := &lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" {
		return "Lease " + lease.Name + " has no holder"
	}
	if s.RenewTime == nil {
		return "Lease " + lease.Name + " was never renewed"
	}
	return fmt.Sprintf("%s holds Lease %s, and has not renewed it since %s", *s.HolderIdentity, lease.Name, rollout.Clock(s.RenewTime.Time))
}
