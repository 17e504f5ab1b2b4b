package guard_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// What the webhook refuses, the kind's own rules refuse as well, and nothing else.
func TestTheKindRefusesWhatTheWebhookRefuses(t *testing.T) {
	w := newWorld(t)
	handler := w.routesOn(testenv.Shared())["/admission/zpdb-validation"]
	for spec, want := range map[string]string{
		"{selector: {matchLabels: {a: b}}}":                                                               "",
		"{selector: {matchLabels: {a: b}}, maxUnavailable: 0}":                                            "",
		"{selector: {matchLabels: {a: b}}, maxUnavailablePercentage: 50}":                                 "",
		"{selector: {matchLabels: {a: b}}, podNamePartitionRegex: '', podNameRegexGroup: 1}":              "",
		`{selector: {matchLabels: {a: b}}, podNamePartitionRegex: '[a-z\-]+-zone-[a-z]-([0-9]+)'}`:        "",
		`{selector: {matchLabels: {a: b}}, podNamePartitionRegex: 'x(?:y)(?P<part>[0-9]+)'}`:              "",
		`{selector: {matchLabels: {a: b}}, podNamePartitionRegex: '\(x(y)', crossZoneEvictionDelay: 20m}`: "",
		`{selector: {matchLabels: {a: b}}, podNamePartitionRegex: '[(]x(y)(z)', podNameRegexGroup: 2}`:    "",
		"{maxUnavailable: 1}": "invalid value: selector is not found",
		"{selector: {}}":      "invalid value: selector is not found",
		"{selector: {matchLabels: {a: b}}, maxUnavailable: -1}":                                                  "invalid value: max unavailable must be 0 <= val, got -1",
		"{selector: {matchLabels: {a: b}}, maxUnavailablePercentage: 101}":                                       "invalid value: max unavailable percentage must be 0 <= val <= 100, got 101",
		"{selector: {matchLabels: {a: b}}, maxUnavailable: 1, maxUnavailablePercentage: 1}":                      "invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set",
		"{selector: {matchLabels: {a: b}}, maxUnavailablePercentage: 1, podNamePartitionRegex: 'x-([0-9])'}":     "invalid value: max unavailable percentage can not be used with partition awareness",
		"{selector: {matchLabels: {a: b}}, podNamePartitionRegex: 'x-([0-9'}":                                    "invalid value: regex is not valid, got error parsing regexp: missing closing ]: `[0-9$`",
		"{selector: {matchLabels: {a: b}}, podNamePartitionRegex: 'x-[(0-9)]'}":                                  "invalid value: regex is not valid, got regular expression requires at least one subexpression",
		`{selector: {matchLabels: {a: b}}, podNamePartitionRegex: 'x-\(0-9\)'}`:                                  "invalid value: regex is not valid, got regular expression requires at least one subexpression",
		"{selector: {matchLabels: {a: b}}, podNamePartitionRegex: '(x)-([0-9])'}":                                "invalid value: regex is not valid, got regular expression has multiple subexpressions and requires podNameRegexGroup to be set",
		"{selector: {matchLabels: {a: b}}, podNamePartitionRegex: '(x)-([0-9])', podNameRegexGroup: 3}":          "invalid value: regex is not valid, got regular expression subexpression index out of range",
		"{selector: {matchLabels: {a: b}}, podNamePartitionRegex: 'x-([0-9])', crossZoneEvictionDelay: soon}":    `invalid value: crossZoneEvictionDelay is not a valid duration, got time: invalid duration "soon"`,
		"{selector: {matchLabels: {a: b}}, podNamePartitionRegex: 'x-([0-9])', crossZoneEvictionDelay: -1m}":     "invalid value: crossZoneEvictionDelay must not be negative, got -1m0s",
		"{selector: {matchLabels: {a: b}}, podNamePartitionRegex: '(x{1000})" + strings.Repeat("x", 1024) + "'}": "invalid value: regex is not valid, got regular expression must have at most 1024 characters",
		"{selector: {matchLabels: {a: b}}, crossZoneEvictionDelay: 1m}":                                          "invalid value: crossZoneEvictionDelay can only be used with podNamePartitionRegex",
	} {
		obj := &unstructured.Unstructured{}
		manifest := "{apiVersion: rollout-operator.grafana.com/v1, kind: ZoneAwarePodDisruptionBudget, metadata: {generateName: x-}, spec: " + spec + "}"
		if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
			t.Fatal(err)
		}
		obj.SetNamespace(w.namespace)
		got := handler.Handle(t.Context(), webhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: raw(t, obj)}})
		message := ""
		if !got.Allowed {
			message = got.Result.Message
		}
		if message != want {
			t.Errorf("%s: the webhook said %q, want %q", spec, message, want)
		}
		if err := w.client.Create(t.Context(), obj); (err != nil) != (want != "") {
			t.Errorf("%s: the API server said %v, want %q", spec, err, want)
		}
	}
}
