package kube

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Offline is what a ring runs upon without a manager and without a cluster: one
// client that stands for the cache and for the API server, which then are never
// apart, and whoever keeps its indices.
type Offline struct {
	client.Client

	Indexer client.FieldIndexer
	// Version is that of Kubernetes, such as v1.36.2; [OfflineVersion] if it is empty.
	Version string
}

// OfflineVersion is the version of Kubernetes that is taken for granted where there is no
// cluster to be asked.
const OfflineVersion = "v1.37.0"

// Events returns a recorder that tells nobody: there is nobody to be told.
func (Offline) Events() events.EventRecorder { return silent{} }

type silent struct{}

// Eventf implements [events.EventRecorder].
func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}
