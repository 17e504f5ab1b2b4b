// Package budget understands ZoneAwarePodDisruptionBudgets: for whom they are, and what
// they ask of evictions and of rollouts. It reads nothing but what it is given.
package budget

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/rollout"
)

// Budget is a ZoneAwarePodDisruptionBudget, understood.
type Budget struct {
	// Object is what was understood.
	Object *zonesv1.ZoneAwarePodDisruptionBudget
	// most is how many Pods may be down; a percentage is one of the replicas.
	most rollout.Limit
	// partition finds the partition in the name of a Pod; nil in zone mode.
	partition *regexp.Regexp
	group     int
	// Delay is how long a Pod must be ready to be counted on.
	Delay time.Duration
}

// Of understands a budget, or says in rollout-operator's words why it cannot.
func Of(object *zonesv1.ZoneAwarePodDisruptionBudget) (*Budget, error) {
	spec := &object.Spec
	b := &Budget{Object: object, most: rollout.Number(1)}
	switch {
	case spec.MaxUnavailable != nil && spec.MaxUnavailablePercentage != nil:
		return nil, errors.New("invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set")
	case spec.MaxUnavailable != nil:
		b.most = rollout.Number(int(*spec.MaxUnavailable))
	case spec.MaxUnavailablePercentage != nil:
		b.most = rollout.Percentage(int(*spec.MaxUnavailablePercentage))
	}
	switch {
	case b.most.Percent && (b.most.Value < 0 || b.most.Value > 100):
		return nil, fmt.Errorf("invalid value: max unavailable percentage must be 0 <= val <= 100, got %d", b.most.Value)
	case b.most.Value < 0:
		return nil, fmt.Errorf("invalid value: max unavailable must be 0 <= val, got %d", b.most.Value)
	}
	if err := b.readPartition(spec); err != nil {
		return nil, fmt.Errorf("invalid value: regex is not valid, got %w", err)
	}
	if spec.Selector.MatchLabels == nil {
		return nil, errors.New("invalid value: selector is not found")
	}
	if b.most.Percent && b.most.Value > 0 && b.partition != nil {
		return nil, errors.New("invalid value: max unavailable percentage can not be used with partition awareness")
	}
	return b, b.readDelay(spec)
}

// maxRegex is how long a regular expression may be. Repetitions make of 7 characters a
// thousand instructions.
const maxRegex = 1024

func (b *Budget) readPartition(spec *zonesv1.ZoneAwarePodDisruptionBudgetSpec) error {
	if spec.PodNamePartitionRegex == "" {
		return nil
	}
	if len(spec.PodNamePartitionRegex) > maxRegex {
		return fmt.Errorf("regular expression must have at most %d characters", maxRegex)
	}
	re, err := regexp.Compile("^" + spec.PodNamePartitionRegex + "$")
	if err != nil {
		return err //nolint:wrapcheck // Of does
	}
	b.partition, b.group = re, 1
	if spec.PodNameRegexGroup != nil {
		b.group = int(*spec.PodNameRegexGroup)
	}
	switch groups := re.NumSubexp(); {
	case groups == 0:
		return errors.New("regular expression requires at least one subexpression")
	case groups > 1 && spec.PodNameRegexGroup == nil:
		return errors.New("regular expression has multiple subexpressions and requires podNameRegexGroup to be set")
	case b.group < 1 || groups < b.group:
		return errors.New("regular expression subexpression index out of range")
	}
	return nil
}

func (b *Budget) readDelay(spec *zonesv1.ZoneAwarePodDisruptionBudgetSpec) error {
	if spec.CrossZoneEvictionDelay == "" {
		return nil
	}
	d, err := time.ParseDuration(spec.CrossZoneEvictionDelay)
	switch {
	case err != nil:
		return fmt.Errorf("invalid value: crossZoneEvictionDelay is not a valid duration, got %w", err)
	case d < 0:
		return fmt.Errorf("invalid value: crossZoneEvictionDelay must not be negative, got %s", d)
	case b.partition == nil:
		return errors.New("invalid value: crossZoneEvictionDelay can only be used with podNamePartitionRegex")
	}
	b.Delay = d
	return nil
}

// Matching is the budget that is for a Pod with such labels, nil if there is none.
func Matching(all []zonesv1.ZoneAwarePodDisruptionBudget, podLabels map[string]string) (*zonesv1.ZoneAwarePodDisruptionBudget, error) {
	var found *zonesv1.ZoneAwarePodDisruptionBudget
	for i := range all {
		if !labels.SelectorFromSet(all[i].Spec.Selector.MatchLabels).Matches(labels.Set(podLabels)) {
			continue
		}
		if found != nil {
			return nil, errors.New("multiple zoned pod disruption budgets found for pod")
		}
		found = &all[i]
	}
	return found, nil
}

// Unavailable is how many Pods may be down, of a StatefulSet or a partition. A percentage
// of no replicas is none, as with rollout-operator: what runs there is not known.
func (b *Budget) Unavailable(set *appsv1.StatefulSet) int {
	replicas := int(min(ptr.Deref(set.Spec.Replicas, 1), set.Status.Replicas))
	if b.most.Percent && replicas == 0 {
		return 0
	}
	return b.most.Of(replicas)
}

// PartitionOf is the partition of a Pod, empty in zone mode.
func (b *Budget) PartitionOf(pod string) (string, error) {
	if b.partition == nil {
		return "", nil
	}
	if found := b.partition.FindStringSubmatch(pod); len(found) > b.group && found[b.group] != "" {
		return found[b.group], nil
	}
	return "", errors.New("failed to extract partition from pod Name regular expression")
}
