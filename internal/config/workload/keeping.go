package workload

import (
	"fmt"
	"strings"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Keeping is what a workload that is not rolled for a new content of an object keeps of the earlier
// one: Kubernetes gives the new one to running Pods that mount it, and to whatever starts.
type Keeping int

// What a workload keeps, the worst first.
const (
	// KeepsNothing is that of a workload that mounts the object: its running Pods have the new content.
	KeepsNothing Keeping = iota
	// KeepsRunning is that of one that has it in the environment, or mounted by subPath: containers
	// that run keep the earlier content, and what starts gets the new one.
	KeepsRunning
	// KeepsUnread is that of one whose containers do not read the object.
	KeepsUnread
	// KeepsAll is that of one that is pinned to an earlier content.
	KeepsAll

	keepingsCount
)

// KeepingOf is what the workload keeps of the content before a release.
func (w *Workload) KeepingOf(r content.Release) Keeping {
	reach := content.ReachNone
	if w.Object != nil && r.Object.Namespace == w.Namespace {
		reach = content.ReachOf(&TemplateOf(w.Object).Spec, r.Object.Kind, r.Object.Name)
	}
	switch {
	case reach == content.ReachNone:
		return KeepsUnread
	case !w.Runs(r):
		return KeepsAll
	case reach == content.ReachRestart:
		return KeepsRunning
	default:
		return KeepsNothing
	}
}

// Clause is what the workload keeps, as a clause about it, and what to do so that it keeps its config.
func (k Keeping) Clause() string {
	switch k {
	case KeepsAll:
		return "it keeps the previous config"
	case KeepsRunning:
		return "its running containers keep the previous config until they restart, and new Pods get the new one; " + pinAdvice
	case KeepsNothing:
		return "its running Pods get the new content, because they mount it; " + pinAdvice
	default:
		return "it is not rolled"
	}
}

// pinAdvice is what makes a workload keep its config.
var pinAdvice = "annotate it with " + vocabulary.PinConfig.Native + `: "true" to keep the previous config`

// Keepings counts workloads by what they keep.
type Keepings [keepingsCount]int

// Text is what the workloads keep, as a clause; empty if there is none.
func (k Keepings) Text() string {
	var said []string
	for _, keeping := range []Keeping{KeepsAll, KeepsRunning, KeepsNothing, KeepsUnread} {
		if n := k[keeping]; n > 0 {
			said = append(said, keeping.count(n))
		}
	}
	return strings.Join(said, ", ")
}

func (k Keeping) count(n int) string {
	workloads, verb := "1 workload", "s"
	if n > 1 {
		workloads, verb = fmt.Sprintf("%d workloads", n), ""
	}
	switch k {
	case KeepsAll:
		return workloads + " keep" + verb + " the previous config"
	case KeepsRunning:
		return "running containers of " + workloads + " keep the previous config until they restart"
	case KeepsNothing:
		return "running Pods of " + workloads + " get the new content, which they mount"
	default:
		if n == 1 {
			return workloads + " is not rolled"
		}
		return workloads + " are not rolled"
	}
}
