package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/plans/account"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
)

// Snapshot is one Instance and what its decision depends on, read at one moment.
type Snapshot struct {
	task.Snapshot

	Now time.Time
	// By is the manager that decides.
	By string
	// NewUID is for an execution that begins in this pass.
	NewUID types.UID
	// Version is what the spec refers to, Former what was last applied, nil if there is
	// no such OperatorVersion.
	Version, Former *choice.Version
	// Pinned is the content that the running plan began with, found by
	// status.execution.contentHash; nil if none runs or it no longer exists.
	Pinned *choice.Version
	// Contents are those with which earlier executions ran, by their hash; nil of one that no
	// longer exists.
	Contents map[string]*choice.Version
	// Answered are objects as the API server has just answered the applies of the pass before.
	Answered map[object.Ref]*unstructured.Unstructured
	// Account is as whom the plans act. Unwatched is true if it has no permission to watch
	// something that was read, and neither has the manager: then only time says when to read again.
	Account   account.Account
	Unwatched bool
	// NamespaceGoes is true once the Instance's namespace is being deleted, so that
	// nothing can be created in it.
	NamespaceGoes bool
}
