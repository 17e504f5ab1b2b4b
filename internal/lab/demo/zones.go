package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	zoneGroup = "store"
	zonePods  = 6
)

// moveZones edits the config of a store that is spread over three zones, and
// watches one zone roll after the other. It fails if two were down at the same time.
func (s *story) moveZones(ctx context.Context) error {
	if !s.Zones {
		s.view.heading("Skipping zones: this cluster does not have the kind RolloutGroup (spillway install --rings=config,zones)")
		return nil
	}
	s.view.heading("A user edits ConfigMap store: COMPRESSION=zstd, which a store in three zones uses")
	s.view.line("All three StatefulSets get the new hash immediately; their Pods are replaced one zone at a time, one Pod at a time.\n")
	before := map[string]string{}
	err := s.untilZones(ctx, func(e *decision.Explanation) bool {
		for i := range e.Zones {
			before[e.Zones[i].Name] = e.Zones[i].Revision
		}
		return isWhole(e)
	})
	if err != nil {
		return err
	}
	began := s.Now()
	if err := s.patch(ctx, &corev1.ConfigMap{}, zoneGroup, `{"data":{"COMPRESSION":"zstd"}}`); err != nil {
		return err
	}
	err = s.untilZones(ctx, func(e *decision.Explanation) bool {
		for i := range e.Zones {
			if z := &e.Zones[i]; z.Revision != before[z.Name] && !slices.Contains(s.moved, z.Name) {
				s.moved = append(s.moved, z.Name)
			}
		}
		return isWhole(e) && len(s.moved) == len(e.Zones)
	})
	s.zonesTook = s.Now().Sub(began)
	return err
}

// isWhole is true if every zone is healthy at a revision that is recorded.
func isWhole(e *decision.Explanation) bool {
	return e.Phase == string(rollout.PhaseComplete) && len(e.Zones) > 0 &&
		!slices.ContainsFunc(e.Zones, func(z v1alpha1.Zone) bool { return z.Revision == "" })
}

// untilZones shows the zones until done is true of them. It may miss states between two
// looks, so done must not wait for one that passes.
func (s *story) untilZones(ctx context.Context, done func(*decision.Explanation) bool) error {
	ticker := time.NewTicker(100 * time.Millisecond) //nolint:forbidigo // a view for people, refreshed as they read
	defer ticker.Stop()
	for {
		e, err := s.observeZones(ctx)
		if err != nil {
			return err
		}
		if done(e) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the zones did not settle: " + e.Sentence)
		case <-ticker.C:
		}
	}
}

// downNow are the zones that are down at one moment: all Pods are read together.
func (s *story) downNow(ctx context.Context, e *decision.Explanation) ([]string, error) {
	pods := &corev1.PodList{}
	if err := s.client.List(ctx, pods, client.InNamespace(s.Namespace)); err != nil {
		return nil, fmt.Errorf("list the Pods of the zones: %w", err)
	}
	ready := map[string]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if owner := metav1.GetControllerOf(pod); owner != nil && isReady(pod) && pod.DeletionTimestamp == nil {
			ready[owner.Name]++
		}
	}
	var down []string
	for i := range e.Zones {
		if z := &e.Zones[i]; ready[z.Name] < int(z.Total) {
			down = append(down, z.Name)
		}
	}
	return down, nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// observeZones shows the zones. It is an error if two are down.
func (s *story) observeZones(ctx context.Context) (*decision.Explanation, error) {
	e, err := zones.Explain(ctx, s.client, zones.Options{Now: s.Now}, s.Namespace, zoneGroup)
	if err != nil {
		return nil, fmt.Errorf("get the zones: %w", err)
	}
	rows, down := []row{{zoneGroup, "  " + e.Sentence}}, []string{}
	for i := range e.Zones {
		z := &e.Zones[i]
		rows = append(rows, row{z.Name, zoneRow(z)})
		if z.Ready < z.Total {
			down = append(down, z.Name)
		}
	}
	s.view.show(rows)
	if len(down) > 1 { // or each was when its Pods were read
		if down, err = s.downNow(ctx, &e); err == nil && len(down) > 1 {
			err = fmt.Errorf("%v are down at the same time", down)
		}
		if err != nil {
			return nil, err
		}
	}
	return &e, nil
}

func zoneRow(z *v1alpha1.Zone) string {
	mark := "↻"
	switch {
	case z.Message == "":
		mark = "✓"
	case z.Ready == z.Total:
		mark = "…"
	}
	return fmt.Sprintf("%s %s  %d/%d updated, %d ready  %s", mark, z.Name, z.Updated, z.Total, z.Ready, z.Message)
}
