package reloader

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Options are the flags of Reloader that decide what rolls. A nil *Options reads no annotation of Reloader.
type Options struct {
	// Names has the annotations that other names are used for, by their own ones.
	Names map[string]string
	// AutoAll is "auto" for all workloads that say nothing.
	AutoAll bool
	// IgnoredNamespaces are those whose workloads are left alone.
	IgnoredNamespaces []string
	// Namespaces are those whose workloads are not left alone, nil for all.
	Namespaces *Selected
	// IgnoredKinds are the kinds of objects that roll nothing.
	IgnoredKinds []content.Kind
	// Selector is for the labels of objects that may roll something; nil for all.
	Selector labels.Selector
	// Classes counts SecretProviderClasses.
	Classes bool
	// OnCreate and OnDelete roll also for an object that appears or goes.
	OnCreate, OnDelete bool
	// Since is when Spillway began to read the annotations: what ran then is rolled with its next change.
	Since time.Time
}

// name is the name that an annotation is read by.
func (o *Options) name(of string) string {
	if other := o.Names[of]; other != "" {
		return other
	}
	return of
}

// Skips reports whether workloads of a namespace are left alone.
func (o *Options) Skips(namespace string) bool {
	if o.Namespaces != nil {
		if _, selected := o.Namespaces.lookup(namespace); !selected {
			return true
		}
	}
	return slices.Contains(o.IgnoredNamespaces, namespace)
}

// SinceIn is when Spillway began to read the annotations in a namespace.
func (o *Options) SinceIn(namespace string) time.Time {
	if o.Namespaces != nil {
		if since, _ := o.Namespaces.lookup(namespace); since.After(o.Since) {
			return since
		}
	}
	return o.Since
}

// counts reports whether objects of a kind may roll something.
func (o *Options) counts(kind content.Kind) bool {
	return !slices.Contains(o.IgnoredKinds, kind) && (kind != content.SecretProviderClass || o.Classes)
}

// Mark is what the annotations and labels of an object say.
type Mark string

// The marks.
const (
	// Plain is an object that says nothing.
	Plain Mark = ""
	// Matched is one that workloads with "search" are rolled by.
	Matched Mark = "matched"
	// Ignored is one that rolls nothing.
	Ignored Mark = "ignored"
)

// MarkOf reads the annotations and labels of an object.
func (o *Options) MarkOf(annotations, of map[string]string) Mark {
	switch {
	case annotations[o.name(vocabulary.ReloaderIgnore)] == isTrue, o.Selector != nil && !o.Selector.Matches(labels.Set(of)):
		return Ignored
	case annotations[o.name(vocabulary.ReloaderMatch)] == isTrue:
		return Matched
	default:
		return Plain
	}
}

const isTrue = "true"

// ParseSelector reads what --resource-label-selector has: "key=value", or "key:value" as earlier versions of
// Reloader had it, with "*" for any value. It is nil if there is none.
func ParseSelector(entries []string) (labels.Selector, error) {
	if len(entries) == 0 {
		return nil, nil //nolint:nilnil // no selector is what no entries are
	}
	parts := make([]string, 0, len(entries))
	for _, entry := range entries {
		key, value, found := strings.Cut(entry, ":")
		if !found {
			key, value, found = strings.Cut(entry, "=")
		}
		switch {
		case found && value == "*":
			parts = append(parts, key)
		case found && strings.Contains(entry, ":"):
			parts = append(parts, key+"="+value)
		default:
			parts = append(parts, entry)
		}
	}
	selector, err := labels.Parse(strings.Join(parts, ","))
	if err != nil {
		return nil, fmt.Errorf("parse labels: %w", err)
	}
	return selector, nil
}

// ParseIgnored reads what --resources-to-ignore has: "configMaps" or "secrets", in any case, and not both.
func ParseIgnored(entries []string) ([]content.Kind, error) {
	var kinds []content.Kind
	for _, entry := range entries {
		switch strings.ToLower(entry) {
		case "configmaps":
			kinds = append(kinds, content.ConfigMap)
		case "secrets":
			kinds = append(kinds, content.Secret)
		default:
			return nil, fmt.Errorf("%q is not known; use configMaps or secrets", entry)
		}
	}
	if len(kinds) > 1 {
		return nil, fmt.Errorf("%q leaves nothing to roll for; use configMaps or secrets", strings.Join(entries, ","))
	}
	return kinds, nil
}
