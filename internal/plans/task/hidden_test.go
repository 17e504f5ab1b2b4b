package task

import (
	"encoding/base64"
	"testing"
)

func TestMessagesWithoutValues(t *testing.T) {
	h := NewHidden([]string{"s3cret-value", "ab", "first line\nsecond line", `with "quotes"`})
	for text, want := range map[string]string{
		`label: Invalid value: "s3cret-value !"`:                  `label: Invalid value: "(hidden) !"`,
		`was cut: "s3cret-va...`:                                  `was cut: "(hidden)...`,
		`a short one: "ab", and the word about`:                   `a short one: (hidden), and the word about`,
		base64.StdEncoding.EncodeToString([]byte("s3cret-value")): "(hidden)",
		"yaml: line 3: second line: mapping values":               "yaml: line 3: (hidden): mapping values",
		`Invalid value: "with \"quotes\""`:                        `Invalid value: "(hidden)"`,
		"waiting for Deployment app: 1 of 3 Pods ready":           "waiting for Deployment app: 1 of 3 Pods ready",
		"s3cret-value and s3cret-value":                           "(hidden) and (hidden)",
	} {
		if got := h.In(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
