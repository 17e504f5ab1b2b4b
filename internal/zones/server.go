package zones

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/version"
	versions "k8s.io/apimachinery/pkg/version"

	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// advancesRevision is the first version whose controller advances
// status.currentRevision of StatefulSets of type OnDelete automatically.
var advancesRevision = version.MajorMinor(1, 37)

// server finds out once what the API server is able to do.
type server struct {
	// version asks the API server for its version, try whether it keeps
	// rollingUpdate.maxUnavailable of a StatefulSet.
	version func() (*versions.Info, error)
	try     func(context.Context, *appsv1.StatefulSet) (bool, error)

	mu           sync.Mutex
	found        decision.Server
	knowsVersion bool
	knowsTry     bool
}

// look returns what is known, and finds out what these sets need to know.
func (s *server) look(ctx context.Context, sets []appsv1.StatefulSet) (decision.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lookAtVersion(); err != nil {
		return decision.Server{}, err
	}
	for i := range sets {
		if err := s.lookAtField(ctx, &sets[i]); err != nil {
			return decision.Server{}, err
		}
	}
	return s.found, nil
}

func (s *server) lookAtVersion() error {
	if s.knowsVersion {
		return nil
	}
	info, err := s.version()
	if err != nil {
		return fmt.Errorf("ask for the version of the API server: %w", err)
	}
	v, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return fmt.Errorf("version of the API server: %w", err)
	}
	s.found.AdvancesRevision, s.knowsVersion = v.AtLeast(advancesRevision), true
	return nil
}

// lookAtField tries a set that is held by its partition. One that has the field
// shows that it was kept once; should the API server not honor it any more, its
// controller takes down one Pod at a time, which no budget forbids.
func (s *server) lookAtField(ctx context.Context, set *appsv1.StatefulSet) error {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if s.knowsTry || rolling == nil {
		return nil
	}
	if rolling.MaxUnavailable != nil {
		s.found.MaxUnavailable = true
		return nil
	}
	keeps, err := s.try(ctx, set)
	if err != nil {
		return err
	}
	s.found.MaxUnavailable, s.knowsTry = keeps, true
	return nil
}
