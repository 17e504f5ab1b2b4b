package describe

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusal is why the API server has refused a write. It names whoever is asked on such
// a write and is mentioned in the message: a quota, a webhook, an account.
//
// Where that cannot be found out, what was said is told: a diagnosis never fails for
// want of a better one.
func (a *asker) refusal(ctx context.Context, ref Ref, message string) *answer {
	for _, by := range []func(context.Context, Ref, string) (*answer, error){a.refusedByQuota, a.refusedByPolicy, a.refusedByWebhook, a.refusedForAccount} {
		if found, err := by(ctx, ref, message); err == nil && found != nil {
			return found
		}
	}
	link := a.link(ref, ReasonRefused, "the API server refuses it: %s", message)
	link.Next = a.kubectl("describe", ref)
	return &answer{links: []Link{link}}
}

// refusedByQuota finds the quota that is mentioned.
func (a *asker) refusedByQuota(ctx context.Context, ref Ref, message string) (*answer, error) {
	if !strings.Contains(message, "exceeded quota") {
		return nil, nil //nolint:nilnil // it is not about a quota
	}
	var list corev1.ResourceQuotaList
	if err := a.Client.List(ctx, &list, client.InNamespace(ref.Namespace)); err != nil {
		return nil, fmt.Errorf("list ResourceQuotas: %w", err)
	}
	for i := range list.Items {
		q := &list.Items[i]
		if !strings.Contains(message, "quota: "+q.Name+",") {
			continue
		}
		link := a.link(refTo(kindQuota, q), ReasonQuota, "ResourceQuota %s is used up: %s", q.Name, usedUp(q))
		link.Next = a.kubectl("describe", link.Ref)
		return &answer{links: []Link{link}}, nil
	}
	return nil, nil //nolint:nilnil // it has gone meanwhile
}

// usedUp is what a quota has no more of.
func usedUp(q *corev1.ResourceQuota) string {
	var parts []string
	for name, hard := range q.Status.Hard {
		if used := q.Status.Used[name]; used.Cmp(hard) >= 0 {
			parts = append(parts, fmt.Sprintf("%s of %s %s", used.String(), hard.String(), name))
		}
	}
	if len(parts) == 0 {
		return "what is asked for is more than what is left"
	}
	return strings.Join(parts, ", ")
}

// refusedByPolicy finds the admission policy that is mentioned.
func (a *asker) refusedByPolicy(ctx context.Context, _ Ref, message string) (*answer, error) {
	if !strings.Contains(message, "ValidatingAdmissionPolicy") {
		return nil, nil //nolint:nilnil // it is not about a policy
	}
	var list admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := a.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list ValidatingAdmissionPolicies: %w", err)
	}
	for i := range list.Items {
		ref := Ref{Kind: "ValidatingAdmissionPolicy", Name: list.Items[i].Name}
		if strings.Contains(message, "'"+ref.Name+"'") {
			link := a.link(ref, ReasonRefused, "ValidatingAdmissionPolicy %s says no: %s", ref.Name, causeIn(message))
			link.Next = a.kubectl("describe", ref)
			return &answer{links: []Link{link}}, nil
		}
	}
	return nil, nil //nolint:nilnil // it has gone meanwhile
}

// hook is a webhook, and the configuration that it stands in.
type hook struct {
	Ref

	name   string
	client admissionregistrationv1.WebhookClientConfig
}

// refusedByWebhook finds the webhook that is mentioned, and who should answer it.
func (a *asker) refusedByWebhook(ctx context.Context, _ Ref, message string) (*answer, error) {
	if !strings.Contains(message, "webhook") {
		return nil, nil //nolint:nilnil // it is not about a webhook
	}
	hooks, err := a.hooks(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range hooks {
		if !strings.Contains(message, `"`+h.name+`"`) {
			continue
		}
		if strings.Contains(message, "denied the request") {
			link := a.link(h.Ref, ReasonRefused, "webhook %s says no: %s", h.name, causeIn(message))
			link.Next = a.kubectl("describe", h.Ref)
			return &answer{links: []Link{link}}, nil
		}
		link := a.link(h.Ref, ReasonWebhook, "webhook %s does not answer: %s", h.name, causeIn(message))
		link.Next = a.kubectl("describe", h.Ref)
		found := answer{links: []Link{link}}
		if s := h.client.Service; s != nil {
			found.on = a.about(Ref{Kind: kindService, Namespace: s.Namespace, Name: s.Name})
		}
		return &found, nil
	}
	return nil, nil //nolint:nilnil // it has gone meanwhile
}

// causeIn is the end of a message, where the cause stands.
func causeIn(message string) string {
	for _, word := range []string{"denied the request: ", "denied request: ", "failed to call webhook: "} {
		if _, rest, ok := strings.Cut(message, word); ok {
			return rest
		}
	}
	return message
}

func (a *asker) hooks(ctx context.Context) ([]hook, error) {
	var hooks []hook
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	if err := a.Client.List(ctx, &mutating); err != nil {
		return nil, fmt.Errorf("list MutatingWebhookConfigurations: %w", err)
	}
	for _, c := range mutating.Items {
		for _, w := range c.Webhooks {
			hooks = append(hooks, hook{Ref{Kind: "MutatingWebhookConfiguration", Name: c.Name}, w.Name, w.ClientConfig})
		}
	}
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := a.Client.List(ctx, &validating); err != nil {
		return nil, fmt.Errorf("list ValidatingWebhookConfigurations: %w", err)
	}
	for _, c := range validating.Items {
		for _, w := range c.Webhooks {
			hooks = append(hooks, hook{Ref{Kind: "ValidatingWebhookConfiguration", Name: c.Name}, w.Name, w.ClientConfig})
		}
	}
	return hooks, nil
}

// refusedForAccount: the ServiceAccount that Pods are to run as is not there.
func (a *asker) refusedForAccount(ctx context.Context, ref Ref, message string) (*answer, error) {
	if !strings.Contains(message, "serviceaccount") {
		return nil, nil //nolint:nilnil // it is not about an account
	}
	w, err := a.read(ctx, ref)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it makes no Pods
	}
	name := cmp.Or(w.template.Spec.ServiceAccountName, "default")
	account := Ref{Kind: kindAccount, Namespace: ref.Namespace, Name: name}
	if err := a.get(ctx, account, &corev1.ServiceAccount{}); !isNotFound(err) {
		return nil, err
	}
	link := a.link(account, ReasonMissing, "ServiceAccount %s does not exist, and the Pods of %s are to run as it", name, ref)
	link.Next = a.pointless("kubectl create serviceaccount " + name + " -n " + ref.Namespace)
	return &answer{links: []Link{link}}, nil
}

// service is one that somebody calls: it serves if one of its endpoints is ready.
func (a *asker) service(ctx context.Context, ref Ref, _ bool) (answer, error) {
	s := &corev1.Service{}
	err := a.get(ctx, ref, s)
	if isNotFound(err) {
		link := a.link(ref, ReasonMissing, "Service %s in namespace %s does not exist", ref.Name, ref.Namespace)
		link.Next = a.pointless("kubectl get services -n " + ref.Namespace)
		return answer{links: []Link{link}}, nil
	}
	if err != nil {
		return answer{}, err
	}
	ready, err := a.endpoints(ctx, ref)
	if err != nil {
		return answer{links: []Link{a.link(ref, "", "Service %s is there", s.Name)}}, err
	}
	if ready > 0 {
		return answer{links: []Link{a.link(ref, "", "Service %s has %d endpoints that are ready", s.Name, ready)}}, nil
	}
	return a.unserved(ctx, s)
}

func (a *asker) endpoints(ctx context.Context, ref Ref) (ready int, err error) {
	var list discoveryv1.EndpointSliceList
	err = a.Client.List(ctx, &list, client.InNamespace(ref.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: ref.Name})
	if err != nil {
		return 0, fmt.Errorf("list EndpointSlices: %w", err)
	}
	for i := range list.Items {
		for _, e := range list.Items[i].Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready++
			}
		}
	}
	return ready, nil
}

// unserved goes to the Pod that should serve, if there is one.
func (a *asker) unserved(ctx context.Context, s *corev1.Service) (answer, error) {
	link := a.link(refTo(kindService, s), ReasonEndpoints, "Service %s in namespace %s has no endpoint that is ready", s.Name, s.Namespace)
	link.Next = a.kubectl("describe", link.Ref)
	found := answer{links: []Link{link}}
	var pods corev1.PodList
	if len(s.Spec.Selector) > 0 {
		if err := a.Client.List(ctx, &pods, client.InNamespace(s.Namespace), client.MatchingLabels(s.Spec.Selector)); err != nil {
			return found, fmt.Errorf("list Pods: %w", err)
		}
	}
	if i := worst(pods.Items); i >= 0 {
		found.on = a.about(refTo(kindPod, &pods.Items[i]))
		return found, nil
	}
	if makers := a.makersOf(ctx, s); len(makers) > 0 {
		found.on = a.about(makers[0])
		return found, nil
	}
	found.links[0].Sentence += ": its selector finds no Pod"
	return found, nil
}

// makersOf are the workloads whose Pods a Service would find.
func (a *asker) makersOf(ctx context.Context, s *corev1.Service) []Ref {
	var makers []Ref
	templates, err := a.templatesWith(ctx, s.Namespace, s.Spec.Selector)
	if err != nil || len(s.Spec.Selector) == 0 {
		return nil
	}
	for _, w := range templates {
		makers = append(makers, w.ref())
	}
	return makers
}
