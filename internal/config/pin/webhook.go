package pin

import (
	"encoding/json"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/admission"
)

// By is what points Pods at snapshots when they are created. The zero value is ByPolicy.
type By string

const (
	// ByPolicy is the policy of [Policy], which needs Kubernetes 1.36.
	ByPolicy By = "policy"
	// ByWebhook is the webhooks of [Webhooks], for older API servers.
	ByWebhook By = "webhook"
)

// webhookTimeout is how long, in seconds, the API server waits for an answer.
const webhookTimeout = 5

// Webhooks do in some namespaces what the policies of [Policy] do. Without an answer the API
// server refuses: a Pod with pins must never start with another content.
func Webhooks(namespaces Namespaces) []admission.Webhook {
	var webhooks []admission.Webhook
	for _, r := range rules() {
		w := admission.Webhook{
			Name: r.name, Path: r.path(), Mutating: true, MatchConditions: r.spec.MatchConditions,
			FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: webhookTimeout, NamespaceSelector: namespaces.LabelSelector(),
		}
		for _, of := range r.spec.MatchConstraints.ResourceRules {
			w.Rules = append(w.Rules, of.RuleWithOperations)
		}
		webhooks = append(webhooks, w)
	}
	return webhooks
}

func (r rule) path() string { return "/pin-" + r.kind }

// Answers are what the webhooks answer, by their paths: the operations that make of an object
// what the policies make of it, given what it was before, which is empty when it is created. An
// error stands for a refusal.
func Answers() map[string]func(now, before []byte) ([]jsonpatch.Operation, error) {
	return map[string]func(now, before []byte) ([]jsonpatch.Operation, error){
		rule{kind: "pod"}.path():     answer(func(p, _ *corev1.Pod) error { return Rewrite(p) }),
		rule{kind: "job"}.path():     answer(func(j, before *batchv1.Job) error { Hold(j, before); return nil }),
		rule{kind: "cronjob"}.path(): answer(func(c, _ *batchv1.CronJob) error { Inherit(c); return nil }),
	}
}

// answer compares the object as this program knows it with what becomes of it: fields that it
// does not know stay as they are.
func answer[T any](edit func(now, before *T) error) func(now, before []byte) ([]jsonpatch.Operation, error) {
	return func(raw, rawBefore []byte) ([]jsonpatch.Operation, error) {
		now, before := new(T), (*T)(nil)
		if err := json.Unmarshal(raw, now); err != nil {
			return nil, fmt.Errorf("decode the object: %w", err)
		}
		if len(rawBefore) > 0 {
			before = new(T)
			if err := json.Unmarshal(rawBefore, before); err != nil {
				return nil, fmt.Errorf("decode the former object: %w", err)
			}
		}
		known, err := json.Marshal(now)
		if err != nil {
			return nil, fmt.Errorf("encode the object: %w", err)
		}
		if err := edit(now, before); err != nil {
			return nil, err
		}
		edited, err := json.Marshal(now)
		if err != nil {
			return nil, fmt.Errorf("encode the changed object: %w", err)
		}
		operations, err := jsonpatch.CreatePatch(known, edited)
		if err != nil {
			return nil, fmt.Errorf("compare the object with what becomes of it: %w", err)
		}
		return operations, nil
	}
}
