package explain

import (
	"bytes"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
	"github.com/spillway-dev/spillway/internal/describe/explain/native"
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
	m, err := a.managerOf(ctx, namespace)
	if err != nil || !m.Watches || m.Down == "" {
		return nil
	}
	answer := a.managed(&m)
	return &answer
}

func (a *asker) managerOf(ctx context.Context, namespace string) (describe.Manager, error) {
	m, err := describe.ManagerOf(ctx, a.Client, namespace)
	if err == nil {
		err = m.Look(ctx, a.Client, a.Options.Now())
	}
	return m, err
}

func (a *asker) manages(ctx context.Context, ref describe.Ref, namespace string) (chain.Answer, error) {
	m, err := a.managerOf(ctx, namespace)
	switch {
	case err != nil:
		return chain.Answer{}, err
	case m.Watches:
		return a.managed(&m), nil
	}
	link := a.Link(ref, chain.ReasonManagerDown, "waiting for the manager: %s", m.Absence(namespace))
	link.Next = a.Command("spillway check")
	if m.Deployment != nil {
		link.Next = a.Kubectl("edit", m.Ref)
	}
	return chain.Answer{Links: []chain.Link{link}}, nil
}

// managed is whether the manager that watches a namespace runs, and why not.
func (a *asker) managed(m *describe.Manager) chain.Answer {
	if m.Down == "" {
		return chain.Answer{Links: []chain.Link{a.managerUp(m.Ref)}}
	}
	link := a.managerDown(m.Ref, m.Down)
	link.Since = m.Since
	w := native.WorkloadOf(m.Deployment)
	return chain.Answer{Links: []chain.Link{link}, Then: a.downBecause(&w)}
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

// annotator is who has last written an annotation, or another field that is no status, by the name
// under which they wrote.
func annotator(obj metav1.Object, key string) string {
	field := []byte(`"f:` + key + `"`)
	for _, entry := range obj.GetManagedFields() {
		if entry.FieldsV1 != nil && entry.Subresource != "status" && bytes.Contains(entry.FieldsV1.GetRawBytes(), field) {
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
