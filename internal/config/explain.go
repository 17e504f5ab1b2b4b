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

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
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
	// StateNotObserved is as no manager has recorded it yet.
	StateNotObserved = decision.StateNotObserved
)

// Explanation is the state of a workload in one sentence, as the manager has recorded it, and the facts.
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
	Changed []string `json:"changed,omitempty"`
	// Behind are the objects whose content it does not have, or fails with.
	Behind   []content.Object `json:"-"`
	LastRoll *workload.Roll   `json:"lastRoll,omitempty"`
	Problems []string         `json:"problems,omitempty"`
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
	// DecidedAt is when a manager decided it, DecidedBy which replica did; absent if none has recorded it.
	DecidedAt *time.Time `json:"decidedAt,omitempty"`
	DecidedBy string     `json:"decidedBy,omitempty"`
	// FailedOn is the workload that keeps this one from being rolled, nil if none does.
	FailedOn *workload.Name `json:"failedOn,omitempty"`
	// FailedWith is the object whose content has failed there.
	FailedWith *content.Object `json:"-"`
	// Pause is who has paused the workload itself, nil if it is not paused.
	Pause *content.Pause `json:"pause,omitempty"`
	// PausedFor is the object that is paused, nil if none is, or if the workload itself is.
	PausedFor *content.Object `json:"-"`
	// Unseen is what the caller may not read of the config: then it is not known whether the manager has seen
	// all of it. Empty if the caller may read all.
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

// Explain returns the state of one workload, with the caller's own permissions.
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
	explanations, err := Status(ctx, reader, options, name.Namespace)
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

// Overview is the state of every relevant workload, and of the policies by which they are
// rolled.
type Overview struct {
	Workloads []Explanation
	// Policies are those that the caller may read, in the order in which they count.
	Policies []policy.Explanation
	// Records are what the manager has recorded of objects, as far as the caller may read it.
	Records map[content.Object]*v1alpha1.ConfigRollout
	// Wake is when time alone changes some of this, zero for never.
	Wake time.Time

	counts map[content.Object]count
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

// Survey is the package's, and remembers what was read.
func (m *Memory) Survey(ctx context.Context, reader client.Reader, options Options, namespace string) (Overview, error) {
	source := content.Source{Digests: content.Digesting(reader), Values: reader, Provided: true}
	if reduced, ok := reader.(content.Reduced); ok {
		source.Values, source.Hashes = reduced.Values(), reduced.Hashed()
	}
	m.cache.begin()
	o := newObserver(options, reader, source)
	o.namespace, o.cache, o.readOnly = namespace, m.cache, true
	o.policies = policy.NewReader(reader, options.Namespaces)
	observed, err := o.observe(ctx)
	if err != nil {
		return Overview{}, err
	}
	return explainAll(&observed, &options), nil
}

// count is how many of the workloads that use an object have its content.
type count struct{ done, total int }

// Count is how many of the tracked workloads of its namespace that use an object have its content.
func (o *Overview) Count(object content.Object) (done, total int) {
	if o.counts == nil {
		o.counts = map[content.Object]count{}
		for i := range o.Workloads {
			o.Workloads[i].countIn(o.counts)
		}
	}
	c := o.counts[object]
	return c.done, c.total
}

func (e *Explanation) countIn(counts map[content.Object]count) {
	for i := range e.Uses {
		of := e.Uses[i].Of
		isAgain := slices.ContainsFunc(e.Uses[:i], func(u UseFact) bool { return u.Of == of })
		if e.State == StateNotTracked || e.Uses[i].Ignored || of.Namespace != e.Namespace || isAgain {
			continue
		}
		c := counts[of]
		if c.total++; !e.isBehind(of) {
			c.done++
		}
		counts[of] = c
	}
}

// IsFor is true of a workload that is rolled for an object.
func (e *Explanation) IsFor(object content.Object) bool {
	return slices.ContainsFunc(e.Uses, func(u UseFact) bool { return u.Of == object && !u.Ignored })
}

// Lacks is true of a workload whose Pods need something of an object that does not exist.
func (e *Explanation) Lacks(object content.Object) bool {
	return slices.ContainsFunc(e.Lacking, func(m content.Missing) bool { return m.Object == object })
}

// isBehind is true of a workload that does not have the content of an object, or of which that is not known.
func (e *Explanation) isBehind(object content.Object) bool {
	return e.Lacks(object) || slices.Contains(e.Behind, object) || len(e.Behind) == 0 && e.State != StateUpToDate
}

// explainAll puts what is recorded of all workloads beside the facts.
func explainAll(o *decision.Observed, options *Options) Overview {
	states, present := statesOf(o), digests{}
	all := Overview{Workloads: make([]Explanation, 0, len(o.Workloads)), Policies: o.Policies.Explain(), Records: o.Records}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if w.Settings.Tracked && !options.Watches(w.Namespace) { // what was observed is not what a manager would observe
			all.Workloads = append(all.Workloads, notWatched(w.Name, options.Namespaces))
			continue
		}
		e := explain(o, w, states[w.Name], present)
		e.Limits = o.LimitsFor(w.Namespace, e.Reason, options.Options)
		all.Workloads, all.Wake = append(all.Workloads, e), ring.Earlier(all.Wake, w.ChangesAt(o.Now))
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

// explain puts what is recorded of a workload beside the facts, if it is recorded of the workload as it is now.
func explain(o *decision.Observed, w *decision.Workload, s *state, present digests) Explanation {
	e := Explanation{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name.Name}
	switch {
	case !w.Settings.Tracked && w.Suspension.IsSettled() && !w.Legacy.Finalizer: // it was opted out since
		e = notTracked(w.Name)
	case present.agree(w, s):
		e.record(w, s)
	default:
		e.apply(w.Unrecorded(o.Now, o.Recordable))
		isNow := func(s *state) bool { return present.agree(w, s) }
		if u := unnamed(o.Records, w.Outdated(), isNow); u != nil && e.State == StateNotObserved {
			e.record(w, u)
		}
	}
	e.Hash, e.Uses = cmp.Or(w.Template.Hash, w.Accepted()), useFacts(w)
	if e.State == StateNotObserved {
		e.Behind = w.Outdated()
	}
	if e.Lacking = w.Missing; len(w.Denied) > 0 {
		e.withhold(w)
	}
	for _, m := range e.Lacking {
		e.Missing = append(e.Missing, m.String(w.Namespace))
	}
	if w.Settings.Paused {
		e.Pause = &w.Settings.PausedBy
	}
	switch e.State {
	case StateRolling, StateLate, StateFailed:
		e.Progress = w.Health.Reason
	case StateNext, StateWaiting, StateNotObserved:
		e.Keeps = w.Keeps()
	case StateUpToDate, StateNotTracked, StateNotWatched:
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
func (e *Explanation) apply(s ring.Waiting) {
	e.State, e.Reason, e.Cause, e.Sentence = State(s.State), s.Reason, s.Cause, s.Sentence(s.Unit, s.Position)
	e.Since, e.Until, e.Deadline, e.Position = moment(s.Since), moment(s.Until), moment(s.Deadline), s.Position
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
