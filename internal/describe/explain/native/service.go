package native

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
)

// Service is a Service, which serves if one of its endpoints is ready.
func (a *Asker) Service(ctx context.Context, ref describe.Ref, first bool) (chain.Answer, error) {
	s := &corev1.Service{}
	err := a.Get(ctx, ref, s)
	if chain.IsNotFound(err) && first {
		return chain.Answer{}, fmt.Errorf("Service %s %w in namespace %s", ref.Name, ErrNotFound, ref.Namespace)
	}
	if chain.IsNotFound(err) {
		link := a.Link(ref, chain.ReasonMissing, "Service %s in namespace %s does not exist", ref.Name, ref.Namespace)
		link.Next = a.Command("kubectl get services" + chain.NamespaceFlag(ref))
		return chain.Answer{Links: []chain.Link{link}}, nil
	}
	if err != nil {
		return chain.Answer{}, err
	}
	ready, err := a.endpoints(ctx, ref)
	if err != nil {
		return chain.Answer{Links: []chain.Link{a.Link(ref, "", "Service %s exists", s.Name)}}, err
	}
	if ready > 0 {
		return chain.Answer{Links: []chain.Link{a.Link(ref, "", "Service %s has %d endpoints that are ready", s.Name, ready)}}, nil
	}
	return a.unserved(ctx, s)
}

// unserved goes to the Pod that should serve, if there is one.
func (a *Asker) unserved(ctx context.Context, s *corev1.Service) (chain.Answer, error) {
	link := a.Link(describe.RefTo(describe.KindService, s), chain.ReasonEndpoints, "Service %s in namespace %s has no ready endpoint", s.Name, s.Namespace)
	link.Next = a.Kubectl("describe", link.Ref)
	found := chain.Answer{Links: []chain.Link{link}}
	var pods corev1.PodList
	if len(s.Spec.Selector) > 0 {
		if err := a.Client.List(ctx, &pods, client.InNamespace(s.Namespace), client.MatchingLabels(s.Spec.Selector)); err != nil {
			return found, fmt.Errorf("list Pods: %w", err)
		}
	}
	if i := Worst(pods.Items); i >= 0 {
		found.Then = a.About(describe.RefTo(describe.KindPod, &pods.Items[i]))
		return found, nil
	}
	if makers := a.workloadsOf(ctx, s); len(makers) > 0 {
		found.Then = a.About(makers[0])
		return found, nil
	}
	found.Links[0].Sentence += ": its selector matches no Pod"
	return found, nil
}

// workloadsOf are the workloads whose Pods a Service would find.
func (a *Asker) workloadsOf(ctx context.Context, s *corev1.Service) []describe.Ref {
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
