package explain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe"
)

// service is a Service, which serves if one of its endpoints is ready.
func (a *asker) service(ctx context.Context, ref describe.Ref, first bool) (answer, error) {
	s := &corev1.Service{}
	err := a.get(ctx, ref, s)
	if IsNotFound(err) && first {
		return answer{}, fmt.Errorf("%s %s %w in namespace %s", ref.Kind, ref.Name, ErrNotFound, ref.Namespace)
	}
	if IsNotFound(err) {
		link := a.link(ref, ReasonMissing, "Service %s in namespace %s does not exist", ref.Name, ref.Namespace)
		link.Next = a.command("kubectl get services" + namespaceFlag(ref))
		return answer{Links: []Link{link}}, nil
	}
	if err != nil {
		return answer{}, err
	}
	ready, err := a.endpoints(ctx, ref)
	if err != nil {
		return answer{Links: []Link{a.link(ref, "", "Service %s exists", s.Name)}}, err
	}
	if ready > 0 {
		return answer{Links: []Link{a.link(ref, "", "Service %s has %d endpoints that are ready", s.Name, ready)}}, nil
	}
	return a.unserved(ctx, s)
}

// unserved goes to the Pod that should serve, if there is one.
func (a *asker) unserved(ctx context.Context, s *corev1.Service) (answer, error) {
	link := a.link(describe.RefTo(describe.KindService, s), ReasonEndpoints, "Service %s in namespace %s has no ready endpoint", s.Name, s.Namespace)
	link.Next = a.kubectl("describe", link.Ref)
	found := answer{Links: []Link{link}}
	var pods corev1.PodList
	if len(s.Spec.Selector) > 0 {
		if err := a.Client.List(ctx, &pods, client.InNamespace(s.Namespace), client.MatchingLabels(s.Spec.Selector)); err != nil {
			return found, fmt.Errorf("list Pods: %w", err)
		}
	}
	if i := worst(pods.Items); i >= 0 {
		found.Then = a.about(describe.RefTo(describe.KindPod, &pods.Items[i]))
		return found, nil
	}
	if makers := a.workloadsOf(ctx, s); len(makers) > 0 {
		found.Then = a.about(makers[0])
		return found, nil
	}
	found.Links[0].Sentence += ": its selector matches no Pod"
	return found, nil
}

// workloadsOf are the workloads whose Pods a Service would find.
func (a *asker) workloadsOf(ctx context.Context, s *corev1.Service) []describe.Ref {
	var makers []describe.Ref
	templates, err := a.templatesWith(ctx, s.Namespace, s.Spec.Selector)
	if err != nil || len(s.Spec.Selector) == 0 {
		return nil
	}
	for _, w := range templates {
		makers = append(makers, w.Ref())
	}
	return makers
}
