package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// State is the state of a workload.
type State = decision.State

// The states of a workload.
const (
	StateUpToDate   = decision.StateUpToDate
	StateRolling    = decision.StateRolling
	StateNext       = decision.StateNext
	StateWaiting    = decision.StateWaiting
	StateLate       = decision.StateLate
	StateFailed     = decision.StateFailed
	StateNotTracked = decision.StateNotTracked
	StateNotWatched = decision.StateNotWatched
)

// Explanation is the state of a workload in one sentence, and the facts.
type Explanation struct {
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	State     State          `json:"state"`
	Reason    rollout.Reason `json:"reason,omitempty"`
	// Sentence is the message that Events and logs have, Cause its parts: the same for all that wait for the same.
	Sentence string        `json:"sentence"`
	Cause    rollout.Cause `json:"-"`
	Since    *time.Time    `json:"since,omitempty"`
	Until    *time.Time    `json:"until,omitempty"`
	// Deadline is when a workload that rolls counts as failed, nil for a Deployment,
	// whose failure Kubernetes reports.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Position is the place in the queue for the budget, from 1; 0 if not queued.
	Position int `json:"position,omitempty"`
	// Limits are those of the manager that it is queued for, and who had the last rolls.
	Limits *decision.Limits `json:"limits,omitempty"`
	// Progress is the message of kstatus while a workload rolls or is late.
	Progress string    `json:"progress,omitempty"`
	Hash     string    `json:"hash,omitempty"`
	Uses     []UseFact `json:"uses,omitempty"`
	Missing  []string  `json:"missing,omitempty"`
	// Lacking is Missing as values.
	Lacking []content.Missing `json:"-"`
	// Changed is what it has not been rolled for yet, or what it is rolling for:
	// "ConfigMap app: LOG_LEVEL". Nil if that is not known.
	Changed  []string       `json:"changed,omitempty"`
	LastRoll *workload.Roll `json:"lastRoll,omitempty"`
	Problems []string       `json:"problems,omitempty"`
	// LeftOut says which extra objects of other namespaces do not count.
	LeftOut []string `json:"leftOut,omitempty"`
	// Pins are the contents that new Pods get: "ConfigMap app: app-1a2b3c4d5e". Unpinned says
	// what of the config is not pinned, and why.
	Pins     []string `json:"pins,omitempty"`
	Unpinned []string `json:"unpinned,omitempty"`
	// Keeps says, while the workload waits, what its Pods have of each object meanwhile.
	Keeps []string `json:"keeps,omitempty"`
	// Policy is the policy that keeps the workload from being rolled, as "ConfigPolicy shop/careful";
	// empty if none does.
	Policy string `json:"policy,omitempty"`
	// Held is the object whose release the policy holds, nil if none does.
	Held *content.Object `json:"-"`
	// FailedOn is the workload that keeps this one from being rolled, nil if none does.
	FailedOn *workload.Name `json:"failedOn,omitempty"`
	// FailedWith is the object whose content has failed there.
	FailedWith *content.Object `json:"-"`
	// Pause is who has paused the workload itself, nil if it is not paused.
	Pause *content.Pause `json:"pause,omitempty"`
	// PausedFor is the object that is paused, nil if none is, or if the workload itself is.
	PausedFor *content.Object `json:"-"`
	// Unseen is what the caller may not read of what the state was decided from: then the state is as the
	// manager has recorded it. Empty if the caller may read all.
	Unseen string `json:"unseen,omitempty"`
}

// UseFact is one use of an object.
type UseFact struct {
	Object string `json:"object"`
	// Of is the object that Object names.
	Of content.Object `json:"-"`
	// Keys are those used, empty for all of them.
	Keys     []string `json:"keys,omitempty"`
	Exists   bool     `json:"exists"`
	Required bool     `json:"required"`
	Ignored  bool     `json:"ignored,omitempty"`
	// Unseen is true if it is not known whether it exists, because the caller may not read it.
	Unseen bool `json:"unseen,omitempty"`
	// Paused is who has paused what is rolled for the object, nil if it is not paused.
	Paused *content.Pause `json:"paused,omitempty"`
}

// ErrNotFound is returned for a workload that does not exist.
var ErrNotFound = errors.New("not found")

// Explain returns the state of one workload, by the same code that the manager
// runs, with the caller's own permissions and without writes.
func Explain(ctx context.Context, reader client.Reader, options Options, name workload.Name) (Explanation, error) {
	obj := workload.New(name.Kind)
	err := reader.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name}, obj)
	if apierrors.IsNotFound(err) {
		return Explanation{}, fmt.Errorf("%s %s in namespace %s: %w", name.Kind, name.Name, name.Namespace, ErrNotFound)
	}
	if err != nil {
		return Explanation{}, fmt.Errorf("get %s %s: %w", name.Kind, name.Name, err)
	}
	if !options.Watches(name.Namespace) {
		return notWatched(name, options.Namespaces), nil
	}
	explanations, err := statusAround(ctx, reader, options, name.Namespace)
	if err != nil {
		return Explanation{}, err
	}
	i := slices.IndexFunc(explanations, func(e Explanation) bool {
		return e.Kind == name.Kind && e.Namespace == name.Namespace && e.Name == name.Name
	})
	if i < 0 {
		e := notTracked(name)
		if vocabulary.PinConfig.Get(obj.GetAnnotations()) == "true" {
			e.Unpinned = []string{"annotation " + vocabulary.PinConfig.Native + " has no effect: the workload is not tracked"}
		}
		return e, nil
	}
	return explanations[i], nil
}

// statusAround observes all workloads where they share a budget, so that the
// position in its queue is known; unless this is forbidden to the caller.
func statusAround(ctx context.Context, reader client.Reader, options Options, namespace string) ([]Explanation, error) {
	if options.SharesBudget() {
		if explanations, err := Status(ctx, reader, options, ""); !apierrors.IsForbidden(err) {
			return explanations, err
		}
	}
	return Status(ctx, reader, options, namespace)
}

// Overview is the state of every relevant workload, and of the policies by which they are
// rolled.
type Overview struct {
	Workloads []Explanation
	// Policies are those that the caller may read, in the order in which they count. Of
	// each only the releases in what was observed are known.
	Policies []policy.Explanation
	// Wake is when time alone changes some of this, zero for never; Sooner is true if it may do so
	// before, because of how long Pods have been ready or crash.
	Wake   time.Time
	Sooner bool
}

// Status explains every relevant workload of a namespace, of all if it is empty.
func Status(ctx context.Context, reader client.Reader, options Options, namespace string) ([]Explanation, error) {
	all, err := Survey(ctx, reader, options, namespace)
	return all.Workloads, err
}

// Survey explains every relevant workload of a namespace, of all if it is empty, and the
// policies.
func Survey(ctx context.Context, reader client.Reader, options Options, namespace string) (Overview, error) {
	return NewMemory().Survey(ctx, reader, options, namespace)
}

// Memory is what is known of workloads and their config from one survey to the next, so that each
// reads again only what has changed. Losing it is safe. It is for one survey at a time, with the same
// options.
type Memory struct{ cache cache }

// NewMemory knows nothing.
func NewMemory() *Memory { return &Memory{cache{}} }

// Survey is the package's, and remembers what was read. What a manager would have seen between two
// surveys is not remembered: each decides as a manager that has just begun.
func (m *Memory) Survey(ctx context.Context, reader client.Reader, options Options, namespace string) (Overview, error) {
	source := content.Source{Digests: content.Digesting(reader), Values: reader, Provided: true}
	if reduced, ok := reader.(content.Reduced); ok {
		source.Values, source.Hashes = reduced.Values(), reduced.Hashed()
	}
	m.cache.begin()
	o := newObserver(options, reader, source)
	o.namespace, o.cache, o.readOnly = namespace, m.cache, true
	o.budget, o.policies = readBudget(source.Values, options), policy.NewReader(reader, options.Namespaces)
	observed, err := o.observe(ctx)
	if err != nil {
		return Overview{}, err
	}
	all := explainAll(observed, options)
	if observed.Recordable {
		recorded(&observed, all.Workloads)
	}
	return all, nil
}

// explainAll explains everything that was observed.
func explainAll(o decision.Observed, options Options) Overview {
	plan := decision.Explain(o, options.Options)
	answers := plan.Answers()
	all := Overview{Workloads: make([]Explanation, 0, len(plan.Workloads)), Policies: o.Policies.Explain(plan.Reports), Wake: plan.Wake, Sooner: o.PodsMatter}
	for i := range plan.Workloads {
		w := &plan.Workloads[i]
		if w.Settings.Tracked && !options.Watches(w.Namespace) { // what was observed is not what a manager would observe
			all.Workloads = append(all.Workloads, notWatched(w.Name, options.Namespaces))
			continue
		}
		e := explain(w, answers[w.Name], o.Now)
		e.Limits = o.LimitsFor(w.Namespace, e.Reason, options.Options)
		all.Workloads = append(all.Workloads, e)
	}
	return all
}

func notWatched(name workload.Name, namespaces []string) Explanation {
	e := notTracked(name)
	e.State = StateNotWatched
	e.Sentence = fmt.Sprintf("%s %s is not watched: the manager watches only %s; add namespace %s to --namespaces",
		name.Kind, name.Name, strings.Join(namespaces, ", "), name.Namespace)
	return e
}

// explain puts the facts of one workload together.
func explain(w *decision.Workload, answer rollout.Answer, now time.Time) Explanation {
	e := Explanation{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name.Name}
	if w.Settings.Tracked || !w.Suspension.IsSettled() || answer.Hold != nil {
		e.apply(w, answer, now)
		if staged := w.Staged(); staged != nil && e.Policy != "" {
			e.Held = &staged.Release.Object
		}
	} else {
		e = notTracked(w.Name)
	}
	if w.Settings.Paused {
		e.Pause = &w.Settings.PausedBy
	}
	switch e.State {
	case StateRolling, StateLate, StateFailed:
		if at, within := w.Records.Roll.At, workload.TimeToRoll(w.Object); !at.IsZero() && within > 0 {
			e.Deadline = moment(at.Add(within))
		}
		e.Progress, e.Changed = w.Health.Reason, w.Records.Roll.Changed
	case StateNext, StateWaiting:
		e.Changed, e.Keeps = w.Change.Keys, w.Keeps()
	case StateUpToDate, StateNotTracked, StateNotWatched:
	}
	e.Hash, e.Uses, e.Lacking = cmp.Or(w.Template.Hash, w.Accepted()), useFacts(w), w.Missing
	for _, m := range w.Missing {
		e.Missing = append(e.Missing, m.String(w.Namespace))
	}
	e.LeftOut = w.LeftOut
	e.addPins(w)
	for _, p := range w.Settings.Problems {
		e.Problems = append(e.Problems, p.String())
	}
	if !w.Records.Roll.At.IsZero() || !w.Records.Roll.Admitted.IsZero() {
		e.LastRoll = &w.Records.Roll
	}
	return e
}

// addPins says which contents new Pods get.
func (e *Explanation) addPins(w *decision.Workload) {
	for _, p := range w.Pinning.Pins {
		e.Pins = append(e.Pins, fmt.Sprintf("%s %s: %s", p.Kind, p.Name, p.Snapshot()))
	}
	switch {
	case w.Pinning.On:
		e.Unpinned = w.Unpinned()
	case w.Pinning.By != "":
		e.Unpinned = []string{w.Pinning.Refused}
	}
}

func notTracked(name workload.Name) Explanation {
	return Explanation{
		Kind: name.Kind, Namespace: name.Namespace, Name: name.Name, State: StateNotTracked,
		Sentence: fmt.Sprintf("%s %s is not tracked; annotate it with %s: \"true\"",
			name.Kind, name.Name, vocabulary.ConfigTracked.Native),
	}
}

// apply sets what there is to say of a workload that is not up to date.
func (e *Explanation) apply(w *decision.Workload, answer rollout.Answer, now time.Time) {
	if answer == (rollout.Answer{}) {
		e.State, e.Sentence = StateUpToDate, e.Kind+" "+e.Name+" is up to date"
		return
	}
	s := w.Waiting(answer, now)
	e.State, e.Reason, e.Cause, e.Sentence = State(s.State), s.Reason, s.Cause, s.Sentence(s.Unit, s.Position)
	e.Since, e.Until, e.Position = moment(s.Since), moment(s.Until), s.Position
	e.refer(s.About, s.On)
}

// refer sets the object that decides, and the workload that this one waits for.
func (e *Explanation) refer(about, on rollout.Ref) {
	o := &content.Object{Kind: content.Kind(about.Kind), Namespace: about.Namespace, Name: about.Name}
	switch {
	case about.Kind == policy.Kind, about.Kind == policy.ClusterKind:
		e.Policy = policy.NameOf(about)
	case e.Reason == rollout.ReasonPaused && about.Kind != "":
		e.PausedFor = o
	case on.Kind != "":
		e.FailedOn, e.FailedWith = (*workload.Name)(&on), o
	}
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func useFacts(w *decision.Workload) []UseFact {
	facts := make([]UseFact, 0, len(w.Uses))
	for _, use := range w.Uses {
		fact := UseFact{Object: use.Object.From(w.Namespace), Of: use.Object, Exists: use.Exists, Required: use.Required, Ignored: use.Ignored, Paused: w.Config.PausedBy(use.Object)}
		for _, key := range use.Keys {
			fact.Keys = append(fact.Keys, key.Name)
		}
		facts = append(facts, fact)
	}
	return mergeUses(facts)
}

// mergeUses merges the uses of one object, so that each is listed once.
func mergeUses(facts []UseFact) []UseFact {
	var merged []UseFact
	for _, f := range facts {
		i := slices.IndexFunc(merged, func(m UseFact) bool { return m.Object == f.Object })
		if i < 0 {
			merged = append(merged, f)
			continue
		}
		merged[i].merge(f)
	}
	slices.SortFunc(merged, func(a, b UseFact) int { return strings.Compare(a.Object, b.Object) })
	return merged
}

func (f *UseFact) merge(other UseFact) {
	f.Required = f.Required || other.Required
	if len(f.Keys) == 0 || len(other.Keys) == 0 {
		f.Keys = nil
		return
	}
	f.Keys = slices.Concat(f.Keys, other.Keys)
	slices.Sort(f.Keys)
	f.Keys = slices.Compact(f.Keys)
}
