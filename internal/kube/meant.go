package kube

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/nearest"
)

// MeantKind is what a person has nearly certainly meant by a kind that a version of a known
// group does not have: the field that is wrong, kind or apiVersion, and its right value. Both
// are empty of other groups, and of a kind that is like none: a newer Kubernetes may have it.
func MeantKind(s *runtime.Scheme, gvk schema.GroupVersionKind) (field, meant string) {
	if s.Recognizes(gvk) || !s.IsVersionRegistered(gvk.GroupVersion()) || !isWhole(gvk.Group) {
		return "", ""
	}
	if kind := nearKind(gvk.Kind, s.KnownTypes(gvk.GroupVersion())); kind != "" {
		return "kind", kind
	}
	if version := versionOf(gvk.Kind, s); version != "" {
		return "apiVersion", version
	}
	return "", ""
}

// isWhole is true of groups of which all kinds are known: those of Flux may have others.
func isWhole(group string) bool { return !strings.HasSuffix(group, ".fluxcd.io") }

// fewLetters is how many letters of a kind may differ from the one that is meant.
const fewLetters = 2

// nearKind is the kind that is nearly named so, "" if there is none.
func nearKind(name string, known map[string]reflect.Type) string {
	var kinds []string
	for kind, typed := range known {
		if !isObject(typed) {
			continue
		}
		if strings.EqualFold(kind, name) {
			return kind
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	if near, distance := nearest.Of(name, kinds); distance <= min(fewLetters, len(near)/3) {
		return near
	}
	return ""
}

// isObject is true of the type of a kind that has a name, unlike options and lists.
func isObject(typed reflect.Type) bool {
	return typed != nil && reflect.PointerTo(typed).Implements(reflect.TypeFor[metav1.Object]())
}

// versionOf is the preferred version of the only group that has a kind, "" if none or several do.
func versionOf(kind string, s *runtime.Scheme) string {
	var found schema.GroupVersion
	for _, gv := range s.PrioritizedVersionsAllGroups() {
		switch {
		case !isObject(s.KnownTypes(gv)[kind]) || gv.Group == "extensions" || !isWhole(gv.Group):
		case found.Empty():
			found = gv
		case found.Group != gv.Group:
			return ""
		}
	}
	return found.String()
}
