package explain

import (
	"bytes"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// aboutManager asks whether a manager runs that watches a namespace. It is asked where an object waits for nothing else.
func (a *asker) aboutManager(namespace string) *question {
	ref := describe.Ref{Kind: describe.KindManager, Name: "spillway"}
	return a.ask(ref, func(ctx context.Context, _ bool) (answer, error) { return a.manages(ctx, ref, namespace) })
}

// managerGone is the answer that a manager which is installed does not run, nil
// if it is, or if that cannot be known.
func (a *asker) managerGone(ctx context.Context, namespace string) *answer {
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

func (a *asker) manages(ctx context.Context, ref describe.Ref, namespace string) (answer, error) {
	m, err := a.managerOf(ctx, namespace)
	switch {
	case err != nil:
		return answer{}, err
	case m.Watches:
		return a.managed(&m), nil
	}
	link := a.link(ref, ReasonManagerDown, "waiting for the manager: %s", m.Absence(namespace))
	link.Next = a.command("spillway check")
	if m.Deployment != nil {
		link.Next = a.kubectl("edit", m.Ref)
	}
	return answer{Links: []Link{link}}, nil
}

// managed is whether the manager that watches a namespace runs, and why not.
func (a *asker) managed(m *describe.Manager) answer {
	if m.Down == "" {
		return answer{Links: []Link{a.managerUp(m.Ref)}}
	}
	link := a.managerDown(m.Ref, m.Down)
	link.Since = m.Since
	w := workloadOf(m.Deployment)
	return answer{Links: []Link{link}, Then: a.downBecause(&w)}
}

// downBecause goes on to why the Pods of the manager do not run, nil if they do.
func (a *asker) downBecause(w *Workload) *question {
	if w.Wants > 0 && w.IsHealthy() {
		return nil
	}
	if w.Wants > 0 {
		return a.podsUnder(w)
	}
	return a.ask(w.Ref(), func(context.Context, bool) (answer, error) {
		link := a.link(w.Ref(), ReasonManagerDown, "%s is scaled to 0 replicas", w.Name())
		link.Next = a.kubectl("scale", w.Ref(), "--replicas=2")
		return answer{Links: []Link{link}}, nil
	})
}

// podsUnder asks about the Pods of a workload that has a link already.
func (a *asker) podsUnder(w *Workload) *question {
	return a.ask(w.Ref(), func(ctx context.Context, _ bool) (answer, error) {
		return a.unready(ctx, w, a.link(w.Ref(), "", "%s is ready", w.Name()))
	})
}

func (a *asker) managerDown(ref describe.Ref, why string) Link {
	link := a.link(ref, ReasonManagerDown, "no manager is running: %s", why)
	link.Next = a.command("kubectl get pods -A -l app.kubernetes.io/name=spillway,app.kubernetes.io/component=manager")
	return link
}

func (a *asker) managerUp(ref describe.Ref) Link {
	link := a.link(ref, rollout.ReasonProgressing, "the manager is running, and processes it next")
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
func (a *asker) kept(ref describe.Ref, obj client.Object, own string, so answer) answer {
	for _, name := range obj.GetFinalizers() {
		if name != own {
			so.Links = append(so.Links, a.finalizer(ref, name))
			return so
		}
	}
	so.Then = a.aboutManager(ref.Namespace)
	return so
}
