package model

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// The verbs by which a person steers a module.
const (
	VerbPause    = "pause"
	VerbResume   = "resume"
	VerbRollback = "rollback"
)

// Steering is what a person has told a module by a command, so that it can be said
// who wanted what a spec says.
type Steering struct {
	Verb string `json:"verb"`
	// By is the name by which the API server knows them, empty if it did not say.
	By     string      `json:"by,omitempty"`
	Reason string      `json:"reason,omitempty"`
	At     metav1.Time `json:"at"`
	// Revision is what a rollback goes to.
	Revision string `json:"revision,omitempty"`
}

// Note writes it down on a module.
func (s *Steering) Note(module client.Object) error {
	return note(module, vocabulary.Steered.Native, s)
}

// note writes what a user wants into an annotation of a module.
func note(module client.Object, annotation string, what any) error {
	raw, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encode what a user wants: %w", err)
	}
	annotations := module.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = string(raw)
	module.SetAnnotations(annotations)
	return nil
}

// SteeringOf returns the last command of a user for a module, nil if there is none, or if it
// cannot be read: it explains, and nothing is decided by it.
func SteeringOf(module client.Object) *Steering {
	s := &Steering{}
	if err := json.Unmarshal([]byte(vocabulary.Steered.Get(module.GetAnnotations())), s); err != nil || s.Verb == "" {
		return nil
	}
	return s
}

// WriterOf is the field manager that was the last to write what a module stands for,
// empty if the API server does not say.
func WriterOf(module client.Object) string {
	writer, latest := "", metav1.Time{}
	for _, e := range module.GetManagedFields() {
		if e.Subresource != "" || e.FieldsV1 == nil || !writesContent(e.FieldsV1.GetRawBytes()) {
			continue
		}
		if e.Time != nil && !e.Time.Before(&latest) {
			writer, latest = e.Manager, *e.Time
		}
	}
	return writer
}

func writesContent(fields []byte) bool {
	return bytes.Contains(fields, []byte(`"f:template"`)) || bytes.Contains(fields, []byte(`"f:sync"`))
}
