package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/rollout"
)

// installation is a manager that is installed.
type installation struct {
	deployment appsv1.Deployment
	args       manifests.Arguments
}

// installations are the managers in a namespace, in all if it is empty.
func installations(ctx context.Context, reader client.Reader, namespace string) ([]installation, error) {
	list := &appsv1.DeploymentList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(manifests.ManagerLabels())); err != nil {
		return nil, fmt.Errorf("look for managers: %w", err)
	}
	found := make([]installation, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, installation{list.Items[i], manifests.ArgumentsOf(&list.Items[i])})
	}
	if namespace != "" && len(found) == 0 {
		return nil, fmt.Errorf("no manager in namespace %s; name another with -n, or leave it out", namespace)
	}
	return found, nil
}

func (i *installation) group() string {
	return "manager " + i.deployment.Namespace + "/" + i.deployment.Name
}

// check checks everything that is installed for the manager. What may not be read is said.
func (i *installation) check(ctx context.Context, c client.Client, now time.Time) []finding {
	findings := []finding{i.checkPods(), i.checkLeader(ctx, c, now), i.checkMemory(ctx, c)}
	findings = append(findings, i.checkKinds(ctx, c)...)
	findings = append(findings, i.checkAdmission(ctx, c, now)...)
	for n := range findings {
		findings[n].Group = i.group()
	}
	states := i.states(ctx, c, now)
	for _, name := range i.args.Rings() {
		findings = append(findings, i.checkPermissions(ctx, c, name)...)
		if state, ok := states[name]; ok {
			findings = append(findings, state)
		}
	}
	return findings
}

// checkPods says which version runs, and how many Pods are ready.
func (i *installation) checkPods() finding {
	d := &i.deployment
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	f := finding{OK: d.Status.ReadyReplicas > 0, What: fmt.Sprintf("%d of %d Pods are ready, image %s", d.Status.ReadyReplicas, wanted, i.images())}
	if !f.OK || d.Status.ReadyReplicas < wanted {
		f.Advice = f.OK
		f.OK = false
		f.Action = fmt.Sprintf("spillway explain deployment/%s -n %s says why", d.Name, d.Namespace)
	}
	return f
}

// images are those of the Deployment, of which one is the manager's.
func (i *installation) images() string {
	var images []string
	for n := range i.deployment.Spec.Template.Spec.Containers {
		images = append(images, i.deployment.Spec.Template.Spec.Containers[n].Image)
	}
	return strings.Join(images, ", ")
}

// checkLeader says which replica leads, by its Lease.
func (i *installation) checkLeader(ctx context.Context, c client.Reader, now time.Time) finding {
	if i.args.Value("leader-elect", "true") == "false" {
		return finding{OK: true, What: "no leader is elected: --leader-elect=false"}
	}
	key := manifests.LeaseOf(&i.deployment)
	logs := fmt.Sprintf("kubectl logs deployment/%s -n %s says why", i.deployment.Name, i.deployment.Namespace)
	lease := &coordinationv1.Lease{}
	switch err := c.Get(ctx, key, lease); {
	case apierrors.IsNotFound(err):
		return finding{What: "no replica leads: Lease " + key.Name + " not found", Action: logs}
	case err != nil:
		return unread("Lease "+key.Name, err)
	}
	s := &lease.Spec
	switch {
	case manager.IsLed(lease, now):
		return finding{OK: true, What: *s.HolderIdentity + " leads"}
	case s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil:
		return finding{What: "no replica leads: Lease " + key.Name + " has no holder", Action: logs}
	default:
		age := now.Sub(s.RenewTime.Time).Round(time.Second)
		return finding{What: fmt.Sprintf("no replica leads: %s has not renewed Lease %s for %s", *s.HolderIdentity, key.Name, age), Action: logs}
	}
}

// unread is what may not be looked at.
func unread(what string, err error) finding {
	return finding{Advice: true, What: what + " cannot be checked: " + command.PlainError(err).Error()}
}

// checkPermissions asks what the ServiceAccount of the manager may not do.
func (i *installation) checkPermissions(ctx context.Context, c client.Client, name string) []finding {
	user := fmt.Sprintf("system:serviceaccount:%s:%s", i.deployment.Namespace, cmp.Or(i.deployment.Spec.Template.Spec.ServiceAccountName, "default"))
	permitted := i.askOfManager(user)
	findings, err := checkRing(ctx, c, name, i.args.Namespaces(), permitted)
	if err != nil {
		f := unread("what the manager may do", err)
		f.Group = ring(name)
		return []finding{f}
	}
	if name == manager.RingConfig {
		findings = append(findings, i.checkPins(ctx, c, permitted)...)
	}
	return findings
}

// states counts for each ring how what it rolls stands.
func (i *installation) states(ctx context.Context, c client.Client, now time.Time) map[string]finding {
	options := describe.Options{Config: config.Options{Namespaces: i.args.Namespaces(), Now: func() time.Time { return now }}}
	if len(i.args.Namespaces()) == 1 {
		options.Namespace = i.args.Namespaces()[0]
	}
	found, err := describe.Describe(ctx, c, options)
	states := map[string]finding{}
	for _, name := range i.args.Rings() {
		if err != nil {
			f := unread("the state of rollouts", err)
			f.Group = ring(name)
			states[name] = f
			continue
		}
		states[name] = stateOf(name, describe.Rolled(found.Units))
	}
	for _, unseen := range found.Unseen {
		states[unseen.Ring] = finding{Group: ring(unseen.Ring), Advice: true, What: "the state of rollouts cannot be checked: " + unseen.Why}
	}
	return states
}

// stateOf counts the units of a ring by phase.
func stateOf(name string, units []describe.Unit) finding {
	units = describe.OfRing(units, name)
	if !slices.ContainsFunc(units, func(u describe.Unit) bool { return !u.IsPolicy() || !u.IsComplete() }) {
		return finding{Group: ring(name), OK: true, What: "no rollouts"}
	}
	f := finding{Group: ring(name), OK: true, What: "rollouts: " + describe.Counts(units)}
	if slices.ContainsFunc(units, func(u describe.Unit) bool { return u.Phase == rollout.PhaseFailed || u.Phase == describe.PhaseStalled }) {
		f.OK, f.Advice, f.Action = false, true, "spillway status -A --rings "+name+" --waiting shows them"
	}
	return f
}
