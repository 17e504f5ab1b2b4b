package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
)

// TestNamespaceStages: a namespace is in the first stage that selects it, else in a last one, for which none waits. What
// the API server refuses is a problem here, too.
func TestNamespaceStages(t *testing.T) {
	const dev = "{name: dev, namespaceSelector: {matchLabels: {env: dev}}%s}"
	for spec, want := range map[string]string{
		"{objects: [{name: db}]}": "[] ",
		"{soak: 1m, objects: [{name: db}], namespaceStages: [" + fmt.Sprintf(dev, "") + "]}":                                                   "[dev 1m0s 1 others 0s 0] 0 1 ",
		"{objects: [{name: db}], namespaceStages: [" + fmt.Sprintf(dev, ", soak: 2m, minEvidence: 3") + ", {name: rest, minEvidence: 7}]}":     "[dev 2m0s 3 rest 0s 0] 0 1 ",
		"{objects: [{name: db}], namespaceStages: [" + fmt.Sprintf(dev, ", allowEmpty: true") + "]}":                                           "[dev 0s 0 others 0s 0] 0 1 ",
		"{objects: [{name: db}], namespaceStages: [{name: others, namespaceSelector: {matchLabels: {env: prod}}}]}":                            "[others 0s 1 others-too 0s 0] 1 0 ",
		"{namespaceStages: [" + fmt.Sprintf(dev, "") + "]}":                                                                                    "[dev 0s 1 others 0s 0] 0 1 spec.objects",
		"{objects: [{name: db}], namespaceStages: [{name: a}, " + fmt.Sprintf(dev, "") + "]}":                                                  "[a 0s 1 dev 0s 1 others 0s 0] 0 0 spec.namespaceStages[0].namespaceSelector",
		"{objects: [{name: db}], namespaceStages: [{name: a, namespaceSelector: {}}]}":                                                         "[a 0s 0] 0 0 spec.namespaceStages[0].namespaceSelector",
		"{objects: [{name: db}], namespaceStages: [{name: a, namespaceSelector: {matchExpressions: [{key: x, operator: Is}]}}, {name: rest}]}": "[a 0s 1 rest 0s 0] 0 0 spec.namespaceStages[0].namespaceSelector",
	} {
		p, got := named(t, "p", spec), []string{}
		for _, s := range p.NamespaceStages {
			got = append(got, s.Name, s.Soak.String(), fmt.Sprint(s.MinEvidence))
		}
		is := fmt.Sprint(got, " ")
		if p.StagesNamespaces() {
			is += fmt.Sprint(p.NamespaceStage(labels.Set{"env": "dev"}), " ", p.NamespaceStage(labels.Set{"env": "prod"}), " ")
		}
		if is += p.Field; is != want {
			t.Errorf("%s is %q, want %q", spec, is, want)
		}
	}
}

// TestSpreading: the first ClusterConfigPolicy decides which namespace comes first, whatever a namespace has of its own.
func TestSpreading(t *testing.T) {
	const spreads = "objects: [{name: db}], namespaceStages: [{name: dev, namespaceSelector: {matchLabels: {env: dev}}}]"
	db := content.Object{Kind: content.Secret, Namespace: "shop", Name: "db"}
	for name, test := range map[string]struct {
		policies [][2]string
		want     string
	}{
		"none":                          {[][2]string{{"a", "{}"}}, "none"},
		"one":                           {[][2]string{{"a", "{" + spreads + "}"}}, "a"},
		"one of the namespace":          {[][2]string{{"a", "{" + spreads + "}"}, {"shop/b", "{priority: 9}"}}, "a"},
		"another one counts":            {[][2]string{{"a", "{" + spreads + "}"}, {"b", "{priority: 9}"}}, "none"},
		"another one for other objects": {[][2]string{{"a", "{" + spreads + "}"}, {"b", "{priority: 9, objects: [{name: ca}]}"}}, "a"},
		"not for the namespace":         {[][2]string{{"a", "{namespaces: [bank], " + spreads + "}"}}, "none"},
	} {
		var set policy.Set
		for _, p := range test.policies {
			set = append(set, named(t, p[0], p[1]))
		}
		slices.SortFunc(set, policy.Compare)
		got := "none"
		if p := set.Spreading("shop", nil, db); p != nil {
			got = p.Name
		}
		if got != test.want {
			t.Errorf("%s: %s spreads, want %s", name, got, test.want)
		}
		if alone := set.Alone(); len(alone) != len(set) || alone.StagesNamespaces() || alone.Spreading("shop", nil, db) != nil {
			t.Errorf("%s: alone are %v", name, alone)
		}
	}
}
