package pin_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/config/pin"
)

// Where pins are on follows from the flags alone and, with a selector, from the labels of a namespace.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags     pin.Flags
		shop, err string
	}{
		"none":         {shop: "pins are not enabled in namespace shop; install with --pin-namespaces=shop"},
		"named":        {flags: pin.Flags{Names: []string{"shop"}}},
		"another":      {flags: pin.Flags{Names: []string{"bank"}}, shop: "pins are not enabled in namespace shop; install with --pin-namespaces=shop"},
		"all":          {flags: pin.Flags{Names: []string{"*"}}},
		"all watched":  {flags: pin.Flags{Names: []string{"*"}, Watched: []string{"bank"}}, shop: "pins are not enabled in namespace shop; install with --pin-namespaces=shop"},
		"label":        {flags: pin.Flags{Selector: "team=shop"}},
		"other label":  {flags: pin.Flags{Selector: "team!=shop"}, shop: "pins are not enabled in namespace shop: its labels do not match --pin-namespace-selector=team!=shop"},
		"set of":       {flags: pin.Flags{Selector: "team in (shop, bank),!legacy"}},
		"all and one":  {flags: pin.Flags{Names: []string{"*", "shop"}}, err: "--pin-namespaces: * stands for all namespaces that the manager watches; leave the others out"},
		"no name":      {flags: pin.Flags{Names: []string{"A_B"}}, err: `--pin-namespaces: "A_B" cannot be a namespace; use lower-case letters, digits and -`},
		"not watched":  {flags: pin.Flags{Names: []string{"shop"}, Watched: []string{"bank"}, WatchedBy: "--namespaces"}, err: "--pin-namespaces: the manager does not watch namespace shop; add it to --namespaces"},
		"both":         {flags: pin.Flags{Names: []string{"shop"}, Selector: "team=shop"}, err: "--pin-namespace-selector: cannot be used with --pin-namespaces; a selector can name namespaces, as in 'kubernetes.io/metadata.name in (shop, payments)'"},
		"label, some":  {flags: pin.Flags{Selector: "team=shop", Watched: []string{"shop"}, WatchedBy: "--namespaces"}, err: "--pin-namespace-selector: a manager with --namespaces may not read the labels of namespaces; name them by --pin-namespaces, or use * for all that it watches"},
		"no selector":  {flags: pin.Flags{Selector: "team=shop=x"}, err: "--pin-namespace-selector: found '=', expected: ',' or 'end of string'; write it as team=shop or 'tier in (web, api)'"},
		"not a number": {flags: pin.Flags{Selector: "tier>1"}, err: `--pin-namespace-selector: "tier>1" cannot select namespaces; use =, !=, in, notin or the name of a label`},
	} {
		n, err := c.flags.Namespaces()
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != c.err {
			t.Errorf("%s: %q, want %q", name, text, c.err)
		}
		if got := n.Refusal("shop", labels.Set{"team": "shop"}); err == nil && got != c.shop {
			t.Errorf("%s: %q, want %q", name, got, c.shop)
		}
	}
}

// The API server applies pins in the namespaces in which the manager does.
func TestTheAPIServerSelectsTheSameNamespaces(t *testing.T) {
	t.Parallel()
	for _, flags := range []pin.Flags{
		{Names: []string{"shop", "bank"}}, {Names: []string{"*"}}, {Names: []string{"*"}, Watched: []string{"shop"}}, {Selector: "team=shop"}, {Selector: "team!=shop"},
		{Selector: "team in (shop, bank),!legacy"}, {Selector: "team notin (shop)"}, {Selector: "team,legacy"}, {Selector: "kubernetes.io/metadata.name=shop"},
	} {
		n, err := flags.Namespaces()
		if err != nil {
			t.Fatal(err)
		}
		selector := selectorOf(t, n)
		for _, name := range []string{"shop", "bank", "other"} {
			for _, of := range []labels.Set{{}, {"team": "shop"}, {"team": "bank", "legacy": "yes"}, {"legacy": ""}} {
				of["kubernetes.io/metadata.name"] = name
				if on, selected := n.Refusal(name, of) == "", selector.Matches(of); on != selected {
					t.Errorf("%s: in %s with %v pins are on: %t, by the API server: %t", n, name, of, on, selected)
				}
			}
		}
	}
}

func selectorOf(t *testing.T, n pin.Namespaces) labels.Selector {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(n.LabelSelector())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
