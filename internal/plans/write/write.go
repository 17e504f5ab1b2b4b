package write

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/pipe"
	"github.com/spillway-dev/spillway/rollout"
)

// Act is a kind of write.
type Act string

// The acts.
const (
	// Apply applies Object by server-side apply, as [FieldOwner] and by force.
	Apply Act = "Apply"
	// Delete deletes in the foreground the object that has UID.
	Delete Act = "Delete"
	// Extract reads files of the Pod that has UID and applies the objects that keep
	// them; see [pipe.Extraction].
	Extract Act = "Extract"
	// CreateGate creates the RolloutGate that asks Question, EndGate says of Gate that its
	// unit is over, and DeleteGate deletes one of another execution.
	CreateGate Act = "CreateGate"
	EndGate    Act = "EndGate"
	DeleteGate Act = "DeleteGate"
	// AddFinalizer and RemoveFinalizer are about the Instance's cleanup finalizer.
	AddFinalizer    Act = "AddFinalizer"
	RemoveFinalizer Act = "RemoveFinalizer"
	// Identify sets the uid of spec.planExecution, which has none.
	Identify Act = "Identify"
	// ClearRequest removes spec.planExecution.
	ClearRequest Act = "ClearRequest"
)

// Write is something to do once the status that permits it is written.
type Write struct {
	Act Act
	// Ref is the object.
	Ref object.Ref
	// Object is what to apply.
	Object *unstructured.Unstructured
	// Generate are keys of a Secret, and how long the random value is that each of
	// them gets if it has none. They are written by [GeneratedFieldOwner], so that they
	// stay when Object is applied again.
	Generate map[string]int
	// TakeOver is a JSON patch to make before Object is applied, nil for none; see
	// [object.Takeover].
	TakeOver []byte
	// Unchecked is what could not be checked before; see [definition.Result].
	Unchecked string
	// UID and ResourceVersion are preconditions, empty for none.
	UID             types.UID
	ResourceVersion string
	// Extraction is for Extract.
	Extraction *pipe.Extraction
	// Question is for CreateGate, Gate for EndGate, and At is when that is.
	Question *ask.Question
	Gate     *ask.Gate
	At       time.Time
	// Path is the task: phase, step and task; nil of writes that no task makes.
	Path rollout.Path
	// Execution is the uid of the execution that makes the write, empty of writes to the Instance.
	Execution types.UID
}

// Sent identifies what the API server is asked to accept. Preconditions and times are no part of
// it: they differ with each try of the same.
func (w *Write) Sent() string {
	sent := struct {
		Act        Act                        `json:"act"`
		Ref        object.Ref                 `json:"ref"`
		Object     *unstructured.Unstructured `json:"object"`
		Generate   map[string]int             `json:"generate"`
		Extraction *pipe.Extraction           `json:"extraction"`
	}{w.Act, w.Ref, w.Object, w.Generate, w.Extraction}
	raw, err := json.Marshal(sent) //nolint:musttag // it is only hashed; maps are written in the order of their keys
	if err != nil {
		return "" // which differs from what is sent: it is asked again
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// IsToInstance is true of writes to the Instance itself. They are preconditions of
// the next decision, and not part of a plan.
func (w *Write) IsToInstance() bool {
	switch w.Act {
	case AddFinalizer, RemoveFinalizer, Identify, ClearRequest:
		return true
	case Apply, Delete, Extract, CreateGate, EndGate, DeleteGate:
		return false
	}
	return false
}

// GeneratedFieldOwner owns the generated values of Secrets in managedFields.
const GeneratedFieldOwner = kube.FieldOwner + "/generated"

// FieldOwner owns what an Instance applies in managedFields.
func FieldOwner(instance string) string {
	const longest = 128
	owner := kube.FieldOwner + "/instance/" + instance
	if len(owner) > longest {
		sum := sha256.Sum256([]byte(instance))
		owner = kube.FieldOwner + "/instance/" + hex.EncodeToString(sum[:])[:16]
	}
	return owner
}
