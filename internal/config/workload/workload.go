package workload

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Workload is a workload that may use config, and what is known of that config.
type Workload struct {
	Name

	UID        types.UID
	Generation int64
	Settings   Settings
	// Demand is the config that the workload uses.
	Demand   content.Demand
	Template Template
	// Records are what earlier passes wrote on the workload.
	Records    Records
	Suspension Suspension
	// Pinning is how it keeps the config of each of its revisions.
	Pinning Pinning
	// Reloaded is set for a workload that is tracked by annotations of Reloader, and seen is the record of what
	// counted for its hash.
	Reloaded *Reloaded
	seen     string
	// Zone is set for a StatefulSet that is a zone of a group.
	Zone Zone
	// Legacy is what old versions of wave left.
	Legacy Legacy

	// Uses are the objects that count, with what is known of them.
	Uses []content.Use
	// Config is what is known of the objects.
	Config content.Facts
	// Missing is what must exist and does not.
	Missing []content.Missing
	// Denied says, as sentences, what must not be read and how to fix it.
	Denied []string
	// LeftOut says, as sentences, which extra objects of other namespaces do not count.
	LeftOut []string
	// hidesWave is true if wave may have counted one of them.
	hidesWave bool
	// Hashes are of the present contents; nil if they were not needed, because
	// something is missing, denied or still changing, or could not be read.
	Hashes *content.Hashes

	// Unchanged is true if the hash on the template was computed from what is observed now, by
	// the record of it: then no Hashes are needed.
	Unchanged bool
	// inputs identifies what Hashes were computed from.
	inputs string

	// optedIn is when the workload was opted in; isLater is true if it was created before. isEdited
	// is true if its config may be another one since, which matters where it has no hash.
	optedIn           time.Time
	isLater, isEdited bool

	// Object is the workload itself.
	Object client.Object
}

// Template is what the ring reads in a Pod template.
type Template struct {
	// Hash is the present hash, empty if there is none. HashName is the annotation
	// that has it or will have it.
	Hash, HashName string
	// Annotated is true if the template has any annotation.
	Annotated bool
	// Scheduler is the schedulerName.
	Scheduler string
	// Gates is how many scheduling gates there are, including ours.
	Gates int
}

// Legacy is what old versions of wave left on a workload.
type Legacy struct {
	// Finalizer is true if the workload has wave's finalizer.
	Finalizer bool
	// Owns are ConfigMaps and Secrets that would be deleted with the workload. They are
	// Unknown if they must not be listed.
	Owns    []Owned
	Unknown bool
}

// Owned is an object with an owner reference to a workload.
type Owned struct {
	content.Object

	// Index is the place of the owner reference, UID that of the owner.
	Index int
	UID   types.UID
}

// Read reads a workload.
func Read(obj client.Object) Workload {
	template, namespace := TemplateOf(obj), obj.GetNamespace()
	w := Workload{
		Name: NameOf(obj), UID: obj.GetUID(), Generation: obj.GetGeneration(), Object: shallow(obj),
		Settings: settingsOf(namespace, obj.GetAnnotations()), Records: recordsOf(obj), Legacy: Legacy{Finalizer: hasFinalizer(obj)},
		Suspension: SuspensionOf(obj), Zone: zoneOf(obj), seen: vocabulary.ConfigSeen.Get(obj.GetAnnotations()),
	}
	w.Demand = content.DemandOf(namespace, &template.Spec, w.Settings.Extra, w.Settings.PullSecrets)
	w.Demand.Ignored = w.Settings.Ignored
	w.Settings.bound(w.Demand.Uses)
	w.Template = readTemplate(template, w.Settings.Dialect)
	w.Demand.First = w.Accepted() == ""
	w.readPinning(template)
	w.optedIn = kube.WrittenAt(obj, w.Settings.Dialect)
	w.isLater = w.optedIn.After(obj.GetCreationTimestamp().Time)
	if obj.GetDeletionTimestamp() != nil { // only what blocks the deletion still matters
		w.Settings.Tracked, w.Suspension = false, Suspension{}
	}
	return w
}

// ReadTracked reads a workload that a policy tracks, if it does not say itself whether it is tracked: as
// if it had the annotation. It was opted in when the policy was written last, or later.
func ReadTracked(obj client.Object, policy string, since time.Time) Workload {
	if _, _, says := vocabulary.ConfigTracked.Lookup(obj.GetAnnotations()); says {
		return Read(obj)
	}
	w := Read(asTracked(obj))
	w.Settings.TrackedBy, w.isLater = policy, true
	if since.After(w.optedIn) {
		w.optedIn = since
	}
	return w
}

// asTracked is a workload with the annotation that has its config tracked.
func asTracked(obj client.Object) client.Object {
	tracked := shallow(obj)
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[vocabulary.ConfigTracked.Native] = isTrue
	tracked.SetAnnotations(annotations)
	return tracked
}

func readTemplate(t *corev1.PodTemplateSpec, dialect string) Template {
	hash, name, ok := vocabulary.ConfigHash.Lookup(t.Annotations)
	if !ok {
		name = vocabulary.ConfigHash.In(dialect)
	}
	return Template{Hash: hash, HashName: name, Annotated: len(t.Annotations) > 0, Scheduler: t.Spec.SchedulerName, Gates: len(t.Spec.SchedulingGates)}
}

// Observe sets what is known of the config. Of a workload that is not tracked
// nothing is known.
func (w *Workload) Observe(known *content.Known) {
	if w.Settings.Tracked {
		w.Uses, w.Missing, w.Denied, w.Hashes = known.Uses(), known.Missing(), known.Denied(), known.Hashes()
		w.Config = known.Facts()
		w.LeftOut, w.hidesWave = known.LeftOut(), known.HidesWave()
		w.isEdited = w.IsOptedInLater() && w.Config.IsEdited(w.Uses, w.Object.GetCreationTimestamp().Time, w.optedIn)
		if w.Reloaded != nil {
			w.isEdited = w.lacksSeen() && (w.Reloaded.missed || w.isEditedSince(w.optedIn))
		}
		if w.Hashes != nil {
			w.inputs = known.Inputs(w.String(), w.Hashes.Desired)
		}
		w.Unchanged = IsUnchanged(w, known)
	}
}

// IsUnchanged is true if the record of the last roll says that the hash of the workload was
// computed from what is known now. The record is the users' as well: it counts for their
// workload alone.
func IsUnchanged(w *Workload, known *content.Known) bool {
	r := &w.Records.Roll
	hash := cmp.Or(w.Template.Hash, w.Accepted())
	return r.Inputs != "" && hash != "" && !w.lacksSeen() && known.IsComplete() && r.Inputs == known.Inputs(w.String(), hash)
}

// MissingText says what does not exist.
func (w *Workload) MissingText() string {
	return message.Join(w.Missing, ", ", func(m content.Missing) string { return m.String(w.Namespace) })
}

// DeniedText says what must not be read and how to fix it.
func (w *Workload) DeniedText() string {
	return message.Join(w.Denied, "; ", func(sentence string) string { return sentence })
}

// LeftOutText says which extra objects of other namespaces do not count.
func (w *Workload) LeftOutText() string {
	return message.Join(w.LeftOut, "; ", func(sentence string) string { return sentence })
}

// IsMarkedInVain is true if annotations say that the workload is suspended, and
// neither it nor any of its Pods is.
func (w *Workload) IsMarkedInVain() bool {
	annotations := w.Object.GetAnnotations()
	marked := vocabulary.Suspended.Get(annotations) != "" || vocabulary.SchedulingDisabled.Get(annotations) != ""
	return marked && w.Suspension.IsSettled()
}

// IsSettled is true if neither the Pod template must change, nor any Pod must be
// released.
func (w *Workload) IsSettled() bool {
	return w.IsTemplateSettled() && w.Suspension.IsSettled()
}

// IsTemplateSettled is [Workload.IsSettled] for the template alone; Pods may still
// be suspended.
func (w *Workload) IsTemplateSettled() bool {
	if !w.Settings.Tracked {
		return !w.Suspension.IsSuspended()
	}
	return w.IsCurrent()
}

// IsCurrent is true if the template has a hash that means the present config.
func (w *Workload) IsCurrent() bool {
	return !w.Suspension.IsSuspended() && w.HashIsRight()
}

// HashIsRight is [Workload.IsCurrent] for the hash alone.
func (w *Workload) HashIsRight() bool {
	return !w.NeedsPins() && (w.hashIsRight() || w.IsUndone())
}

// IsNewest is true if new Pods get the present config, and not an earlier one that a user went
// back to.
func (w *Workload) IsNewest() bool { return w.hashIsRight() }

func (w *Workload) hashIsRight() bool {
	switch {
	case w.Hashes == nil:
		return w.Unchanged
	case w.Accepted() == "":
		return w.begins()
	}
	return w.Template.Hash == w.Hashes.Desired || w.Accepted() == w.Hashes.Desired || slices.Contains(w.Hashes.Equivalent, w.Accepted()) || w.Adopts()
}

// Adopts is true if the hash is of the present config in another scope, and that
// must be recorded: that ours reads more, or that something is ignored now, is
// no reason to roll.
func (w *Workload) Adopts() bool {
	return w.Hashes != nil && (w.begins() || w.beginsReloaded() || w.changesOnlyInScope() || w.adoptsWave() || w.ignoresMore() || w.isPinnedToPresent())
}

// begins is true of a workload that was opted in while it ran with the present config: the hash is
// recorded, and written into the template with the first change.
func (w *Workload) begins() bool {
	return w.IsOptedInLater() && !w.isEdited && (w.Reloaded != nil || !w.IsAwaiting())
}

// IsOptedInLater is true of a workload without a hash that ran before it was opted in. One that was created
// opted in gets its hash immediately, as by wave: at admission, or by a roll.
func (w *Workload) IsOptedInLater() bool { return w.Accepted() == "" && w.isLater }

// IsAwaiting is true of a workload of which no Pod could start yet, because config was missing. It is
// rolled as soon as that exists, as by wave: Kubernetes would start its Pods later.
func (w *Workload) IsAwaiting() bool {
	c := w.Records.Condition
	return w.Accepted() == "" && (len(w.Missing) > 0 || c != nil && c.Reason == ReasonConfigMissing)
}

// isPinnedToPresent is true if the pins say that new Pods get the present content of all that
// counts. The hash may be another one: a user went back to a content which the workload never
// had together with the others.
func (w *Workload) isPinnedToPresent() bool {
	if !w.Pinning.On || len(w.Pinning.Pins) == 0 || w.Template.Hash == "" || w.Accepted() == w.Hashes.Desired {
		return false
	}
	now := w.PinsNow()
	for i := range w.Uses {
		u := &w.Uses[i]
		p, ok := w.Pinning.Pins.Of(u.Object.Kind, u.Object.Name)
		present, pinnable := now.Of(u.Object.Kind, u.Object.Name)
		if !u.Ignored && (!ok || !pinnable || u.Object.Namespace != w.Namespace || p != present) {
			return false
		}
	}
	return true
}

// adoptsWave is true if the hash is wave's, and no baseline is recorded. A hash
// that the ring or admission wrote is never taken for wave's: what only ours reads
// may have had no values when it was written. Where wave may have counted an object that
// must not be read now, its hash is taken as it is; and recorded even where it is that of
// the present config, because later it would be taken for the hash of a later config.
func (w *Workload) adoptsWave() bool {
	written := !w.Records.Roll.At.IsZero() || !w.Records.Roll.Admitted.IsZero()
	isWaves := w.Template.Hash == w.Hashes.Wave || w.hidesWave
	return !written && w.baseline().Scope == "" && w.Template.Hash != "" && isWaves
}

// ignoresMore is true if nothing but what the user ignores has changed since the
// hash was written.
func (w *Workload) ignoresMore() bool {
	u := w.Hashes.Unignored
	return u != "" && w.Accepted() != w.Hashes.Desired && (u == w.Accepted() || u == cmp.Or(w.Template.Hash, w.baseline().First))
}

// Accepted is the hash that the config would have if nothing had changed since
// the template's was written.
func (w *Workload) Accepted() string { return cmp.Or(w.baseline().Scope, w.Template.Hash) }
