package explain

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/shell"
)

// refusal is why the API server has refused a write. It names what the message
// mentions: a quota, a policy, a webhook, a ServiceAccount.
//
// Where that is not found, it repeats the message: an explanation never fails because no
// better one is found.
func (a *asker) refusal(ctx context.Context, ref describe.Ref, message string) *answer {
	for _, by := range []func(context.Context, describe.Ref, string) (*answer, error){a.refusedByQuota, a.refusedByPolicy, a.refusedByWebhook, a.refusedForAccount} {
		if found, err := by(ctx, ref, message); err == nil && found != nil {
			return found
		}
	}
	link := a.link(ref, ReasonRefused, "the API server refuses it: %s", message)
	link.Next = a.kubectl("describe", ref)
	return &answer{Links: []Link{link}}
}

// refusedByQuota finds the quota that is mentioned.
func (a *asker) refusedByQuota(ctx context.Context, ref describe.Ref, message string) (*answer, error) {
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
		link := a.link(describe.RefTo(describe.KindQuota, q), ReasonQuota, "ResourceQuota %s is used up: %s", q.Name, usedUp(q))
		link.Next = a.kubectl("describe", link.Ref)
		return &answer{Links: []Link{link}}, nil
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
func (a *asker) refusedByPolicy(ctx context.Context, _ describe.Ref, message string) (*answer, error) {
	if !strings.Contains(message, "ValidatingAdmissionPolicy") {
		return nil, nil //nolint:nilnil // it is not about a policy
	}
	var list admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := a.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list ValidatingAdmissionPolicies: %w", err)
	}
	for i := range list.Items {
		ref := describe.Ref{Kind: "ValidatingAdmissionPolicy", Name: list.Items[i].Name}
		if strings.Contains(message, "'"+ref.Name+"'") {
			link := a.link(ref, ReasonRefused, "ValidatingAdmissionPolicy %s denied it: %s", ref.Name, causeIn(message))
			link.Next = a.kubectl("describe", ref)
			return &answer{Links: []Link{link}}, nil
		}
	}
	return nil, nil //nolint:nilnil // it has gone meanwhile
}

// refusedByWebhook finds the webhook that is mentioned, and who should answer it.
func (a *asker) refusedByWebhook(ctx context.Context, _ describe.Ref, message string) (*answer, error) {
	if !strings.Contains(message, "webhook") {
		return nil, nil //nolint:nilnil // it is not about a webhook
	}
	all, err := admission.ListRegistered(ctx, a.Client)
	if err != nil {
		return nil, err
	}
	for i := range all {
		for n := range all[i].Hooks {
			if h := &all[i].Hooks[n]; strings.Contains(message, `"`+h.Name+`"`) {
				return a.byWebhook(describe.Ref{Kind: all[i].Kind, Name: all[i].GetName()}, h, message), nil
			}
		}
	}
	return nil, nil //nolint:nilnil // it has gone meanwhile
}

// byWebhook is that a webhook of a configuration refused, or does not answer.
func (a *asker) byWebhook(of describe.Ref, h *admission.Hook, message string) *answer {
	if strings.Contains(message, "denied the request") {
		link := a.link(of, ReasonRefused, "webhook %s denied it: %s", h.Name, causeIn(message))
		link.Next = a.kubectl("describe", of)
		return &answer{Links: []Link{link}}
	}
	link := a.link(of, ReasonWebhook, "webhook %s does not answer: %s", h.Name, causeIn(message))
	link.Next = a.kubectl("describe", of)
	found := answer{Links: []Link{link}}
	if s := h.Client.Service; s != nil {
		found.Then = a.about(describe.Ref{Kind: describe.KindService, Namespace: s.Namespace, Name: s.Name})
	}
	return &found
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

// refusedForAccount finds that the ServiceAccount of Pods does not exist.
func (a *asker) refusedForAccount(ctx context.Context, ref describe.Ref, message string) (*answer, error) {
	if !strings.Contains(message, "serviceaccount") {
		return nil, nil //nolint:nilnil // it is not about an account
	}
	w, err := a.read(ctx, ref)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it makes no Pods
	}
	name := cmp.Or(w.template.Spec.ServiceAccountName, "default")
	account := describe.Ref{Kind: describe.KindAccount, Namespace: ref.Namespace, Name: name}
	if err := a.get(ctx, account, &corev1.ServiceAccount{}); !IsNotFound(err) {
		return nil, err
	}
	link := a.link(account, ReasonMissing, "ServiceAccount %s not found; the Pods of %s run as it", name, ref)
	link.Next = a.command("kubectl create serviceaccount " + shell.Join(name, "-n", ref.Namespace))
	return &answer{Links: []Link{link}}, nil
}

func (a *asker) endpoints(ctx context.Context, ref describe.Ref) (ready int, err error) {
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
