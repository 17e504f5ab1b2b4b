package kube

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Offline is what a ring runs on without a manager and without a cluster: one
// client that is both the cache and the API server, so that they never differ, and
// the indexer of its objects.
type Offline struct {
	client.Client

	Indexer client.FieldIndexer
	// Version is that of Kubernetes, such as v1.36.2; [OfflineVersion] if it is empty.
	Version string
}

// OfflineVersion is the version of Kubernetes that is taken for granted where there is no
// cluster to be asked.
const OfflineVersion = "v1.37.0"

// Events returns a recorder that drops Events: offline, no client reads them.
func (Offline) Events() events.EventRecorder { return silent{} }

type silent struct{}

// Eventf implements [events.EventRecorder].
func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}
