package model

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Retry is the request of a user to roll out once more what was given up. It names the verdict that it
// ends, so that it ends no later one, also if it is applied again.
type Retry struct {
	// Revision is what was given up, GivenUpAt when.
	Revision  string            `json:"revision"`
	GivenUpAt *metav1.MicroTime `json:"givenUpAt,omitempty"`
	By        string            `json:"by,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

// NewRetry returns the retry of what a module has given up, nil if it has given up nothing.
func NewRetry(s *v1alpha1.ModuleStatus, by, reason string) *Retry {
	if s.RolledBack == "" {
		return nil
	}
	r := &Retry{Revision: s.RolledBack, By: by, Reason: reason}
	if s.GivenUp != nil {
		r.GivenUpAt = &s.GivenUp.At
	}
	return r
}

// Note writes it down on a module.
func (r *Retry) Note(module client.Object) error {
	return note(module, vocabulary.RetryModule.Native, r)
}

// RetryOf returns the retry that stands on a module, nil if there is none, or if it cannot be read.
func RetryOf(module client.Object) *Retry {
	r := &Retry{}
	if err := json.Unmarshal([]byte(vocabulary.RetryModule.Get(module.GetAnnotations())), r); err != nil {
		return nil
	}
	return r
}

// Ends is true of the retry of this very verdict.
func (r *Retry) Ends(s *v1alpha1.ModuleStatus) bool {
	verdict := NewRetry(s, "", "")
	return r != nil && verdict != nil && r.Revision == verdict.Revision && r.GivenUpAt.Equal(verdict.GivenUpAt)
}

// RetryCommand is the command by which a user retries what a module has given up.
func (m *Module) RetryCommand() string {
	return "spillway retry " + shell.Join(strings.ToLower(m.Kind)+"/"+m.Name, "-n", m.Namespace)
}
