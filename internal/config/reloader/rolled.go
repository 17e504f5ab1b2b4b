package reloader

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// sumSize is how much of a sum is kept: enough to compare it, and less than what was computed of a value.
const sumSize = 16

// sumOf is the beginning of the hash that Reloader has of an object: of its keys and values, sorted.
func sumOf(obj client.Object) string {
	var pairs []string
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		for key, value := range o.Data {
			pairs = append(pairs, key+"="+value)
		}
		for key, value := range o.BinaryData {
			pairs = append(pairs, key+"="+base64.StdEncoding.EncodeToString(value))
		}
	case *corev1.Secret:
		for key, value := range o.Data {
			pairs = append(pairs, key+"="+string(value))
		}
	default:
		return ""
	}
	slices.Sort(pairs)
	sum := sha512.Sum512_256([]byte(strings.Join(pairs, ";")))
	return hex.EncodeToString(sum[:])[:sumSize]
}

// rolled are the sums of the contents that Reloader has rolled a workload for, as it records them in the Pod template:
// of each object in an environment variable, or of the last one in an annotation.
type rolled map[string]string

// The types of objects in these records.
var types = map[content.Kind]string{content.ConfigMap: "CONFIGMAP", content.Secret: "SECRET"}

var notOfVariables = regexp.MustCompile("[^A-Z0-9]+")

func variableOf(kind content.Kind, name string) string {
	return "STAKATER_" + notOfVariables.ReplaceAllString(strings.ToUpper(name), "_") + "_" + types[kind]
}

// rolledFor reads the records in a Pod template. Those that cannot be read say nothing.
func (o *Options) rolledFor(w Workload) rolled {
	sums := rolled{}
	for i := range w.Pod.Containers {
		for _, e := range w.Pod.Containers[i].Env {
			if strings.HasPrefix(e.Name, "STAKATER_") && len(e.Value) >= sumSize {
				sums[e.Name] = e.Value[:sumSize]
			}
		}
	}
	var last struct {
		Type string `json:"type"`
		Name string `json:"name"`
		Hash string `json:"hash"`
	}
	if err := json.Unmarshal([]byte(w.Template[o.name(vocabulary.ReloaderLastReloadedFrom)]), &last); err == nil && len(last.Hash) >= sumSize {
		for kind, of := range types {
			if of == last.Type {
				sums[variableOf(kind, last.Name)] = last.Hash[:sumSize]
			}
		}
	}
	return sums
}

// Missed reports whether Reloader has rolled the workload for an object that counts and has another content now: it
// was edited while nothing watched it. Two names may have one variable; then either content will do.
func (w *Wants) Missed(objects []Object) bool {
	if len(w.rolled) == 0 {
		return false
	}
	same, differs := map[string]bool{}, map[string]bool{}
	for _, o := range objects {
		variable := variableOf(o.Kind, o.Name)
		switch sum := w.rolled[variable]; {
		case sum == "" || o.Sum == "" || !w.RolledBy(o.Kind, o.Name, o.Mark):
		case sum == o.Sum:
			same[variable] = true
		default:
			differs[variable] = true
		}
	}
	for variable := range differs {
		if !same[variable] {
			return true
		}
	}
	return false
}

// Restarts reports whether Reloader restarts a Rollout of Argo with such annotations, and leaves its Pod template as it is.
func (o *Options) Restarts(annotations map[string]string) bool {
	return annotations[o.name(vocabulary.ReloaderRolloutStrategy)] == "restart"
}
