package pin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
)

// All stands for all namespaces that the manager watches.
const All = "*"

// Namespaces are those whose workloads and Jobs may keep their config. The zero value is none.
type Namespaces struct {
	// Names are those that are named.
	Names []string
	// All is true if they are those of the whole cluster, and Selector selects some of them by
	// their labels; nil without. Then there are no names.
	All      bool
	Selector labels.Selector
}

// In returns some namespaces by their names.
func In(names ...string) Namespaces { return Namespaces{Names: names} }

// Flags are how users name namespaces.
type Flags struct {
	// Names are names, or [All] alone.
	Names []string
	// Selector is a selector of labels, empty without.
	Selector string
	// Watched are the namespaces that the manager watches, all if empty, and WatchedBy is the
	// flag that names them.
	Watched   []string
	WatchedBy string
}

// Namespaces returns the namespaces, or what is wrong with the flags, by their names.
func (f Flags) Namespaces() (Namespaces, error) {
	if f.Selector != "" {
		return f.selected()
	}
	if slices.Contains(f.Names, All) {
		if len(f.Names) > 1 {
			return Namespaces{}, errors.New("--pin-namespaces: * stands for all namespaces that the manager watches; leave the others out")
		}
		return Namespaces{All: len(f.Watched) == 0, Names: f.Watched}, nil
	}
	for _, name := range f.Names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return Namespaces{}, fmt.Errorf("--pin-namespaces: %q cannot be a namespace; use lower-case letters, digits and -", name)
		}
		if len(f.Watched) > 0 && !slices.Contains(f.Watched, name) {
			return Namespaces{}, fmt.Errorf("--pin-namespaces: the manager does not watch namespace %s; add it to %s", name, f.WatchedBy)
		}
	}
	return Namespaces{Names: f.Names}, nil
}

func (f Flags) selected() (Namespaces, error) {
	switch {
	case len(f.Names) > 0:
		return Namespaces{}, errors.New("--pin-namespace-selector: cannot be used with --pin-namespaces; a selector can name namespaces, as in 'kubernetes.io/metadata.name in (shop, payments)'")
	case len(f.Watched) > 0:
		return Namespaces{}, fmt.Errorf("--pin-namespace-selector: a manager with %s may not read the labels of namespaces; name them by --pin-namespaces, or use * for all that it watches", f.WatchedBy)
	}
	selector, err := labels.Parse(f.Selector)
	if err != nil {
		return Namespaces{}, fmt.Errorf("--pin-namespace-selector: %w; write it as team=shop or 'tier in (web, api)'", err)
	}
	requirements, _ := selector.Requirements()
	for i := range requirements {
		if operators[requirements[i].Operator()] == "" {
			return Namespaces{}, fmt.Errorf("--pin-namespace-selector: %q cannot select namespaces; use =, !=, in, notin or the name of a label", requirements[i].String())
		}
	}
	return Namespaces{Selector: selector}, nil
}

// IsEmpty is true if pins are on nowhere.
func (n Namespaces) IsEmpty() bool { return len(n.Names) == 0 && !n.ReachAll() }

// ReachAll is true if any namespace of the cluster may be one of them, now or later.
func (n Namespaces) ReachAll() bool { return n.All || n.Selector != nil }

// May is true if a namespace is one of them, whatever its labels.
func (n Namespaces) May(name string) bool { return n.ReachAll() || slices.Contains(n.Names, name) }

// Refusal is why pins are off in a namespace with some labels, empty if they are on.
func (n Namespaces) Refusal(name string, of labels.Set) string {
	switch {
	case n.All, slices.Contains(n.Names, name), n.Selector != nil && n.Selector.Matches(of):
		return ""
	case n.Selector != nil:
		return fmt.Sprintf("pins are not enabled in namespace %s: its labels do not match --pin-namespace-selector=%s", name, n.Selector)
	default:
		return "pins are not enabled in namespace " + name + "; install with --pin-namespaces=" + name
	}
}

// LabelSelector selects the namespaces in the API server; those that are named by the label that it
// sets.
func (n Namespaces) LabelSelector() *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	switch {
	case n.All:
	case n.Selector != nil:
		requirements, _ := n.Selector.Requirements()
		for _, r := range requirements {
			s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: operators[r.Operator()], Values: r.Values().List()})
		}
	default:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: nameLabel, Operator: metav1.LabelSelectorOpIn, Values: n.Names}}
	}
	return s
}

// nameLabel is the label of each namespace with its name.
const nameLabel = "kubernetes.io/metadata.name"

// operators are what admission knows of the operators of selectors.
var operators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// String is the namespaces as the flags name them.
func (n Namespaces) String() string {
	switch {
	case n.Selector != nil:
		return "--pin-namespace-selector=" + n.Selector.String()
	case n.All:
		return "--pin-namespaces=" + All
	default:
		return "--pin-namespaces=" + strings.Join(n.Names, ",")
	}
}
