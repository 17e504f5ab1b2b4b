package simulate

import (
	"context"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// unmet are the keys of the readiness times, and those of what fails to prepare, that
// belong to nothing: neither to what existed in the end, nor to what existed before and
// took its time.
func (s *simulation) unmet(ctx context.Context) (ready, unprepared []string, err error) {
	if len(s.options.Readiness.Keys())+len(s.options.Unprepared) == 0 {
		return nil, nil, nil
	}
	met, err := s.met(ctx)
	isMet := func(key string) bool { return met[strings.TrimSuffix(key, "@"+world.NewRevision)] }
	ready = slices.DeleteFunc(s.options.Readiness.Keys(), isMet)
	return ready, slices.DeleteFunc(slices.Clone(s.options.Unprepared), isMet), err
}

// met are the names of what takes its time.
func (s *simulation) met(ctx context.Context) (map[string]bool, error) {
	met := maps.Clone(s.Met)
	for kind, of := range map[string]client.Object{
		workload.Deployment: &appsv1.Deployment{}, workload.StatefulSet: &appsv1.StatefulSet{}, workload.DaemonSet: &appsv1.DaemonSet{}, record.KindJob: &batchv1.Job{},
	} {
		for _, obj := range s.Store.Objects(of, "") {
			met[record.Reference(kind, obj.GetName())] = true
		}
	}
	for _, obj := range s.Store.Objects(&corev1.Pod{}, "") {
		met[record.Reference("pod", obj.GetName())] = true
	}
	clusters, err := cluster.ListLive(ctx, s.Store, "")
	for i := range clusters {
		met[record.Reference("cluster", clusters[i].Name)] = true
	}
	return met, err
}
