package zones

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// Explanation says in one sentence how a group stands, and then the facts.
type Explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is that of the status: Complete, Progressing, Waiting, Paused, Failed
	// or Stalled.
	Phase string `json:"phase"`
	// Reason is why it is not complete, empty if it is.
	Reason rollout.Reason `json:"reason,omitempty"`
	// Sentence is the same that the status, Events and logs use.
	Sentence string     `json:"sentence"`
	Since    *time.Time `json:"since,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// Zone is which zone moves, of how many; Updated how many Pods are up to date
	// and available, of how many.
	Zone    string `json:"zone"`
	Updated string `json:"updated"`
	// Zones has a row for each zone, in the order in which they go.
	Zones []v1alpha1.Zone `json:"zones,omitempty"`
	// Holds are all that wait, zones and Pods, each with the one reason; and Steps the
	// Pods that are moved next.
	Holds []rollout.Hold `json:"holds,omitempty"`
	Steps []rollout.Step `json:"steps,omitempty"`
	// Telling is the one of them that tells most of the whole, nil if nothing waits or
	// something moves.
	Telling *rollout.Hold `json:"-"`
	// Deadline is when what moves counts as failed, nil if nothing does.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Lock is who may disrupt the group, nil if there is none.
	Lock *v1alpha1.Lock `json:"lock,omitempty"`
	// Pause and Retry are what users asked for.
	Pause *v1alpha1.Pause `json:"pause,omitempty"`
	Retry *v1alpha1.Retry `json:"retry,omitempty"`
	// Problems are mistakes, each with its fix; Notes are what is worth knowing
	// though nothing is wrong.
	Problems []string `json:"problems,omitempty"`
	// Faults are the problems for a program.
	Faults []Problem `json:"-"`
	Notes  []string  `json:"notes,omitempty"`
	// History are the last rollouts, the newest first.
	History []v1alpha1.Rollout `json:"history,omitempty"`
	// Automatic is true of a group that no user wrote and no user has changed; and
	// Missing of one that the manager has not made yet.
	Automatic bool `json:"automatic,omitempty"`
	Missing   bool `json:"missing,omitempty"`
}

var (
	// ErrNotFound is returned for a group that has neither an object nor members.
	ErrNotFound = errors.New("no such group")
	// ErrNotInstalled is returned where the API server does not know the kind.
	ErrNotInstalled = errors.New("the kind RolloutGroup is not installed")
)

// Explain says how one group stands, by the same code that the manager runs, with
// the caller's own permissions and nothing but reads. The reader may, but need
// not, be a cache.
func Explain(ctx context.Context, reader client.Reader, options Options, namespace, name string) (Explanation, error) {
	if len(options.Namespaces) > 0 && !slices.Contains(options.Namespaces, namespace) {
		return notWatched(namespace, name, options.Namespaces), nil
	}
	s, err := look(ctx, liveViewer{reader}, options, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return Explanation{}, err
	}
	if s.object == nil && len(s.sets) == 0 {
		return Explanation{}, fmt.Errorf("group %s in namespace %s: %w; a group is made by the label rollout-group of a StatefulSet", name, namespace, ErrNotFound)
	}
	return explain(&s), nil
}

// Status explains every group in a namespace, in all if it is empty, in the order
// of their names.
func Status(ctx context.Context, reader client.Reader, options Options, namespace string) ([]Explanation, error) {
	return status(ctx, liveViewer{reader}, options, namespace)
}

func status(ctx context.Context, reader viewer, options Options, namespace string) ([]Explanation, error) {
	keys := map[types.NamespacedName]bool{}
	for _, in := range options.visible(namespace) {
		if err := addGroups(ctx, reader, in, keys); err != nil {
			return nil, err
		}
	}
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	explanations := make([]Explanation, 0, len(sorted))
	for _, key := range sorted {
		s, err := look(ctx, reader, options, key)
		if err != nil {
			return nil, err
		}
		explanations = append(explanations, explain(&s))
	}
	return explanations, nil
}

// visible are the namespaces to look at; the empty one stands for all.
func (o Options) visible(namespace string) []string {
	if namespace == "" && len(o.Namespaces) > 0 {
		return o.Namespaces
	}
	return []string{namespace}
}

// addGroups finds the groups that have an object, and those that have members.
func addGroups(ctx context.Context, reader client.Reader, namespace string, keys map[types.NamespacedName]bool) error {
	written, sets := &v1alpha1.RolloutGroupList{}, &appsv1.StatefulSetList{}
	if err := reader.List(ctx, written, client.InNamespace(namespace)); err != nil {
		return notInstalled(fmt.Errorf("list RolloutGroups: %w", err))
	}
	if err := reader.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range written.Items {
		keys[client.ObjectKeyFromObject(&written.Items[i])] = true
	}
	for i := range sets.Items {
		if group := groupOf(&sets.Items[i]); group != "" {
			keys[types.NamespacedName{Namespace: sets.Items[i].Namespace, Name: group}] = true
		}
	}
	return nil
}

// notInstalled tells an API server that does not know the kind from one that fails.
func notInstalled(err error) error {
	if apimeta.IsNoMatchError(errors.Unwrap(err)) {
		return fmt.Errorf("%w; apply what \"spillway install --export\" prints", ErrNotInstalled)
	}
	return err
}

// look is what a manager would see of a group that has just begun.
func look(ctx context.Context, reader viewer, options Options, key types.NamespacedName) (snapshot, error) {
	group := &v1alpha1.RolloutGroup{}
	err := reader.Get(ctx, key, group)
	switch {
	case apierrors.IsNotFound(err):
		group = nil
	case err != nil:
		return snapshot{}, notInstalled(fmt.Errorf("get RolloutGroup %s: %w", key.Name, err))
	}
	v, err := reader.view(ctx, key)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{key: key, object: group, sets: v.sets}
	s.Observed = Observed{
		Now: options.Now(), Live: true, Group: groupSeen(key, group), AsOf: v.asOf, Sets: v.observed(),
		Server: Server{MaxUnavailable: true, AdvancesRevision: true}, // it changes what is written, not what waits
	}
	b := &budgets{reader: reader}
	b.watched.Store(true)
	return s, b.bound(ctx, &s)
}

func notWatched(namespace, name string, namespaces []string) Explanation {
	return Explanation{Namespace: namespace, Name: name, Sentence: fmt.Sprintf(
		"group %s is not watched: the manager watches only %s; add namespace %s to --namespaces",
		name, strings.Join(namespaces, ", "), namespace)}
}

// explain puts the facts of one group together.
func explain(s *snapshot) Explanation {
	d := decide(&s.Observed, rollout.Decide)
	status := d.status()
	e := Explanation{
		Namespace: s.key.Namespace, Name: s.key.Name, Phase: status.Phase,
		Zone: status.Zone, Updated: status.Updated, Zones: status.Zones, Holds: d.plan.Holds, Steps: d.plan.Steps,
		Lock: s.Group.Status.Lock, Pause: s.Group.Spec.Pause, Retry: s.Group.Spec.Retry,
		History: status.History, Notes: notes(s),
		Automatic: s.object != nil && isUntouched(s.object), Missing: s.object == nil,
	}
	reason, message := d.verdict()
	e.Sentence = message
	if e.Phase != string(rollout.PhaseComplete) {
		e.Reason, e.Since = reason, moment(status.Since)
	}
	if hold := d.plan.At().Hold; hold != nil {
		e.follow(hold, deadline(&s.Group.Spec))
	}
	e.Faults = d.problems
	for _, p := range d.problems {
		e.Problems = append(e.Problems, p.String())
	}
	if problem := namelessGroup(s.key.Name); problem != "" {
		e.Problems = append(e.Problems, problem)
		e.Sentence = problem
	}
	return e
}

// follow takes over what tells most.
func (e *Explanation) follow(hold *rollout.Hold, patience time.Duration) {
	e.Telling = hold
	if !hold.Until.IsZero() {
		e.Until = &hold.Until
	}
	if hold.Reason == rollout.ReasonProgressing && !hold.Since.IsZero() {
		due := hold.Since.Add(patience)
		e.Deadline = &due
	}
}

func moment(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

// notes say what a way of holding zones risks.
func notes(s *snapshot) []string {
	for i := range s.Sets {
		if set := &s.Sets[i]; set.Strategy == OnDelete && !set.lent() {
			return []string{"the group is of type OnDelete: a Pod that is evicted before its zone's turn comes back at the new revision; " +
				"with type RollingUpdate it would come back at the old one"}
		}
	}
	return nil
}
