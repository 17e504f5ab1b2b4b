package guard

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
)

// budget is a ZoneAwarePodDisruptionBudget, understood.
type budget struct {
	object *zonesv1.ZoneAwarePodDisruptionBudget
	// max is how many Pods may be down; percent is of the replicas, if it is set.
	max, percent int
	// partition finds the partition in the name of a Pod; nil in zone mode.
	partition *regexp.Regexp
	group     int
	// delay is how long a Pod has to be ready to be counted on.
	delay time.Duration
}

// budgetOf understands a budget, or says in the predecessor's words why it cannot.
func budgetOf(object *zonesv1.ZoneAwarePodDisruptionBudget) (*budget, error) {
	spec := &object.Spec
	b := &budget{object: object, max: 1}
	switch {
	case spec.MaxUnavailable != nil && spec.MaxUnavailablePercentage != nil:
		return nil, errors.New("invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set")
	case spec.MaxUnavailable != nil:
		b.max = int(*spec.MaxUnavailable)
	case spec.MaxUnavailablePercentage != nil:
		b.max, b.percent = 0, int(*spec.MaxUnavailablePercentage)
	}
	if b.max < 0 {
		return nil, fmt.Errorf("invalid value: max unavailable must be 0 <= val, got %d", b.max)
	}
	if b.percent < 0 || b.percent > 100 {
		return nil, fmt.Errorf("invalid value: max unavailable percentage must be 0 <= val <= 100, got %d", b.percent)
	}
	if err := b.readPartition(spec); err != nil {
		return nil, fmt.Errorf("invalid value: regex is not valid, got %w", err)
	}
	if spec.Selector.MatchLabels == nil {
		return nil, errors.New("invalid value: selector is not found")
	}
	if b.percent > 0 && b.partition != nil {
		return nil, errors.New("invalid value: max unavailable percentage can not be used with partition awareness")
	}
	return b, b.readDelay(spec)
}

func (b *budget) readPartition(spec *zonesv1.ZoneAwarePodDisruptionBudgetSpec) error {
	if spec.PodNamePartitionRegex == "" {
		return nil
	}
	re, err := regexp.Compile("^" + spec.PodNamePartitionRegex + "$")
	if err != nil {
		return err //nolint:wrapcheck // budgetOf does
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

func (b *budget) readDelay(spec *zonesv1.ZoneAwarePodDisruptionBudgetSpec) error {
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
	b.delay = d
	return nil
}

// matching is the budget that is for a Pod with such labels, nil if there is none.
func matching(all []zonesv1.ZoneAwarePodDisruptionBudget, podLabels map[string]string) (*zonesv1.ZoneAwarePodDisruptionBudget, error) {
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

// unavailable is how many Pods may be down, of a StatefulSet or a partition.
func (b *budget) unavailable(set *appsv1.StatefulSet) int {
	z := zone{set: set}
	replicas := min(z.replicas(), int(set.Status.Replicas))
	if b.percent == 0 || replicas == 0 {
		return b.max
	}
	return max(1, b.percent*replicas/100)
}

// partitionOf is the partition of a Pod, empty in zone mode.
func (b *budget) partitionOf(pod string) (string, error) {
	if b.partition == nil {
		return "", nil
	}
	if found := b.partition.FindStringSubmatch(pod); len(found) > b.group && found[b.group] != "" {
		return found[b.group], nil
	}
	return "", errors.New("failed to extract partition from pod Name regular expression")
}
