package rules

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	"github.com/spillway-dev/spillway/internal/lint/manifest"
)

// barrier is what keeps the Pods of two StatefulSets on different nodes, "the label topology.kubernetes.io/zone";
// empty if nothing does.
type barrier string

// between returns the best barrier between two StatefulSets: one of zones, if there is any.
// That each is spread over the zones is none, whatever a topologySpreadConstraint
// selects: then all of them are in every zone.
func between(m *manifest.Manifests, a, b *appsv1.StatefulSet) barrier {
	barriers := slices.Concat(apart(pinsOf(m, a), pinsOf(m, b)), repels(a, b), repels(b, a))
	for _, found := range barriers {
		if found.isZonal() {
			return found
		}
	}
	if len(barriers) == 0 {
		return ""
	}
	return barriers[0]
}

// isZonal is true of a barrier between failure domains of many nodes, as far as the
// name of its label says so: topology.kubernetes.io/zone, topology.rook.io/rack.
func (b barrier) isZonal() bool {
	key, isLabel := strings.CutPrefix(string(b), labelPin(""))
	if !isLabel {
		return false
	}
	name := strings.ToLower(key[strings.LastIndexByte(key, '/')+1:])
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.ContainsFunc([]string{"zone", "region", "rack", "room", "datacenter"}, func(domain string) bool { return strings.HasSuffix(word, domain) })
	})
}

// apart are the pins by which nothing is for both.
func apart(a, b pins) []barrier {
	var barriers []barrier
	for _, key := range manifest.SortedKeys(a) {
		if others, both := b[key]; both && len(intersection(a[key], others)) == 0 {
			barriers = append(barriers, barrier(key))
		}
	}
	return barriers
}

// pins are what a node has to have for a Pod, each with the values that will do.
type pins map[string][]string

// pinsOf are those of the Pods of a StatefulSet, and of their volumes.
func pinsOf(m *manifest.Manifests, set *appsv1.StatefulSet) pins {
	pod, found := &set.Spec.Template.Spec, pins{}
	for key, value := range pod.NodeSelector {
		found.add(labelPin(key), []string{value})
	}
	if pod.Affinity != nil && pod.Affinity.NodeAffinity != nil && pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		found.addAny(affinityPins(pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution))
	}
	for i := range set.Spec.VolumeClaimTemplates {
		addVolume(m, found, &set.Spec.VolumeClaimTemplates[i])
	}
	return found
}

func affinityPins(selector *corev1.NodeSelector) []pins {
	terms := make([]pins, len(selector.NodeSelectorTerms))
	for i := range terms {
		terms[i] = pins{}
		for _, e := range selector.NodeSelectorTerms[i].MatchExpressions {
			if e.Operator == corev1.NodeSelectorOpIn {
				terms[i].add(labelPin(e.Key), e.Values)
			}
		}
	}
	return terms
}

// addVolume adds where the volumes of a claim can be. A storage class that is not
// among the manifests may well be one of a zone.
func addVolume(m *manifest.Manifests, found pins, claim *corev1.PersistentVolumeClaim) {
	name := ptr.Deref(claim.Spec.StorageClassName, "")
	_, class := manifest.Find[*storagev1.StorageClass](m, "", name)
	switch {
	case name == "":
	case class == nil:
		found.add("the storage class of volume "+claim.Name, []string{name})
	default:
		terms := make([]pins, len(class.AllowedTopologies))
		for i := range terms {
			terms[i] = pins{}
			for _, e := range class.AllowedTopologies[i].MatchLabelExpressions {
				terms[i].add(labelPin(e.Key), e.Values)
			}
		}
		found.addAny(terms)
	}
}

// addAny adds what all of several terms ask for, of which one must be met.
func (p pins) addAny(terms []pins) {
	if len(terms) == 0 {
		return
	}
	for _, key := range manifest.SortedKeys(terms[0]) {
		var values []string
		for _, term := range terms {
			if term[key] == nil {
				values = nil
				break
			}
			values = append(values, term[key]...)
		}
		if values != nil {
			p.add(key, values)
		}
	}
}

// repels are the barriers by which the Pods of one set keep those of another out of
// where they are.
func repels(set, other *appsv1.StatefulSet) []barrier {
	affinity := set.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return nil
	}
	var barriers []barrier
	for i := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		term := &affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]
		if term.TopologyKey != "" && isWithin(term, set.Namespace) && selectorOf(term, set.Spec.Template.Labels).Matches(labels.Set(other.Spec.Template.Labels)) {
			barriers = append(barriers, barrier(labelPin(term.TopologyKey)))
		}
	}
	return barriers
}

// labelPin is how the pin by a label of nodes is called.
func labelPin(key string) string { return "the label " + key }

// isWithin is true of a term about Pods of a namespace, or about those of namespaces
// whose labels are not known here.
func isWithin(term *corev1.PodAffinityTerm, namespace string) bool {
	return term.NamespaceSelector != nil || len(term.Namespaces) == 0 || slices.Contains(term.Namespaces, namespace)
}

// selectorOf is whom a term of Pods with such labels is about; none, if it cannot be
// understood.
func selectorOf(term *corev1.PodAffinityTerm, own labels.Set) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil {
		return labels.Nothing()
	}
	add := func(keys []string, operator selection.Operator) {
		for _, key := range keys {
			if requirement, err := labels.NewRequirement(key, operator, []string{own[key]}); err == nil && own.Has(key) {
				selector = selector.Add(*requirement)
			}
		}
	}
	add(term.MatchLabelKeys, selection.In)
	add(term.MismatchLabelKeys, selection.NotIn)
	return selector
}

func (p pins) add(key string, values []string) {
	if already, ok := p[key]; ok {
		values = intersection(already, values)
	}
	p[key] = values
}

func intersection(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(v string) bool { return !slices.Contains(b, v) })
}
