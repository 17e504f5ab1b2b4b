package config

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// maxRecorded bounds how many changed keys a record names.
const maxRecorded = 20

// recordsOf reads what earlier passes wrote on a workload. What cannot be read,
// because somebody edited it, counts as not there.
func recordsOf(obj client.Object) Records {
	annotations := obj.GetAnnotations()
	r := Records{}
	_ = json.Unmarshal([]byte(vocabulary.ConfigChange.Get(annotations)), &r.Roll)
	c := &Condition{}
	if err := json.Unmarshal([]byte(vocabulary.ConfigStatus.Get(annotations)), c); err == nil {
		r.Condition = c
	}
	r.Baseline.Template, r.Baseline.Scope, _ = strings.Cut(vocabulary.ConfigBaseline.Get(annotations), ":")
	return r
}

// String is the baseline as it stands in the annotation.
func (b Baseline) String() string { return b.Template + ":" + b.Scope }

// encode is a record as it stands in its annotation.
func encode(record any) string {
	raw, err := json.Marshal(record)
	if err != nil {
		return ""
	}
	return string(raw)
}

// shorten bounds the list of what changed.
func shorten(changed []string) []string {
	if len(changed) <= maxRecorded {
		return changed
	}
	return append(changed[:maxRecorded:maxRecorded], "…")
}

// legacyOf reads the predecessor's traces on a workload itself.
func legacyOf(obj client.Object) Legacy {
	return Legacy{Finalizer: hasFinalizer(obj)}
}

// LastRoll is when the config of a workload last rolled it, and why; the zero value if
// it never has.
func LastRoll(workload client.Object) Roll { return recordsOf(workload).Roll }
