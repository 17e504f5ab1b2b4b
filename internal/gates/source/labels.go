package source

import (
	"fmt"
	"regexp"
	"slices"
)

var (
	label = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	name  = regexp.MustCompile(`^\{\{-?\s*\.([a-zA-Z]+)\s*-?\}\}$`)
	// plain are values that mean the same in a query, a URL and JSON.
	// A revision of config has an @.
	plain = regexp.MustCompile(`^[A-Za-z0-9._:/@ -]*$`)
)

// Labels are what a template may contain: {{ .namespace }}.
type Labels map[string]string

// LabelNames are the labels that there are.
func LabelNames() []string {
	return []string{"gate", "group", "kind", "name", "namespace", "revision", "stage", "zone"}
}

// Unknown are the labels in a text that there are not.
func Unknown(text string) []string {
	var unknown []string
	for _, found := range label.FindAllString(text, -1) {
		if m := name.FindStringSubmatch(found); m == nil || !slices.Contains(LabelNames(), m[1]) {
			unknown = append(unknown, found)
		}
	}
	return unknown
}

// fill replaces the labels in a text; escape is what to do with a value there.
func (l Labels) fill(text string, escape func(string) string) (string, error) {
	if err := checkLabels(text); err != nil {
		return "", err
	}
	missing := ""
	filled := label.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := l[name.FindStringSubmatch(found)[1]]
		if !ok || !plain.MatchString(value) {
			missing = found
		}
		return escape(value)
	})
	if missing != "" {
		return "", fmt.Errorf("%s has no value here, or one with characters that a query may not contain", missing)
	}
	return filled, nil
}
