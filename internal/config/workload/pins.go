package workload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Pinning is how a workload keeps the config of each of its revisions.
type Pinning struct {
	// On is true if the workload asks for it, and the manager can do it there.
	On bool
	// Refused is why it cannot, if the workload asks for it.
	Refused string
	// By is the policy that asks for it, empty if the workload itself does or none.
	By string
	// Pins are those that the Pod template has. Invalid says why they cannot be read.
	Pins    pin.Pins
	Invalid string
	// References are what the Pod template refers to.
	References []pin.Reference
	// Lost are the pins of the template whose snapshot does not exist, and cannot be written
	// again because the content is not known any more.
	Lost []pin.Pin
	// Lacking is what Pods of the template need and the contents of its pins do not have.
	Lacking []content.Missing
	// LostBefore are those of the config before that a roll has recorded.
	LostBefore []pin.Pin
}

// Answered records what the ring has rolled a workload with pins for, or has seen undone.
type Answered struct {
	// Hash is that of the config, as it would be on the template now.
	Hash string `json:"hash"`
	// Seen are the contents of the objects, as pins.
	Seen string `json:"seen,omitempty"`
	// At is when.
	At time.Time `json:"at,omitzero"`
	// By and Reason are who went back to an earlier revision by a command, and why.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Before is the config that the workload had before it was rolled, nil if that had no pins.
	Before *Before `json:"before,omitempty"`
}

// Before is an earlier config of a Pod template.
type Before struct {
	Hash string `json:"hash"`
	Pins string `json:"pins"`
}

// SnapshotsOf are the snapshots of which new Pods of a workload start, and those of the config
// to which it may go back.
func SnapshotsOf(workload client.Object) []content.Object {
	pins := pin.Mentioned(vocabulary.Pins.Get(TemplateOf(workload).Annotations))
	if len(pins) == 0 {
		return nil
	}
	pins = append(pins, recordsOf(workload).Answered.Before.Parsed()...)
	var snapshots []content.Object
	for _, p := range pins {
		if p.HasSnapshot() {
			snapshots = append(snapshots, p.SnapshotIn(workload.GetNamespace()))
		}
	}
	return snapshots
}

// readPinning reads the Pod template. Where no pin is asked for or exists, nothing is read.
func (w *Workload) readPinning(t *corev1.PodTemplateSpec) {
	text, _, pinned := vocabulary.Pins.Lookup(t.Annotations)
	if !pinned && !w.Settings.Pin {
		return
	}
	w.Pinning.References = pin.References(&t.Spec)
	if !pinned {
		return
	}
	pins, err := pin.Parse(text)
	if err != nil {
		w.Pinning.Invalid = err.Error()
		return
	}
	w.Pinning.Pins = pins
}

// PinBy lets a policy ask for pins, if the workload does not say whether it has them.
func (w *Workload) PinBy(policy string) {
	if policy == "" || !w.Settings.Tracked || w.Settings.PinSet {
		return
	}
	w.Settings.Pin, w.Pinning.By = true, policy
	w.Pinning.References = pin.References(&TemplateOf(w.Object).Spec)
}

// Allow says whether the workload can have pins: refused is why it cannot.
func (w *Workload) Allow(refused string) {
	if !w.Settings.Pin {
		return
	}
	if refused == "" && !w.fits() {
		refused = fmt.Sprintf("the Pod template refers to more than %d ConfigMaps and Secrets, or their names are too long", pin.Most)
	}
	w.Pinning.Refused = ""
	if w.Pinning.On = refused == ""; w.Pinning.On {
		return
	}
	asked := "annotation " + vocabulary.PinConfig.Native
	if w.Pinning.By != "" {
		asked = "pinConfig of " + w.Pinning.By
	}
	w.Pinning.Refused = asked + " has no effect: " + refused
}

// fits is true if the API server applies as many pins as there would be.
func (w *Workload) fits() bool {
	pins := make(pin.Pins, len(w.Pinning.References))
	for i, r := range w.Pinning.References {
		pins[i] = pin.Pin{Kind: r.Kind, Name: r.Name, Digest: strings.Repeat("0", pin.DigestLength)}
	}
	return pins.Fits()
}

// PinsNow are the pins of the present contents. They are for what the Pod template refers to
// in its own namespace; tokens of ServiceAccounts cannot be copied.
func (w *Workload) PinsNow() pin.Pins {
	pins := make(pin.Pins, 0, len(w.Pinning.References))
	for _, r := range w.Pinning.References {
		o := w.object(r)
		if !w.isPinnable(r) {
			continue
		}
		digest, exists := w.Config.DigestOf(o)
		if !exists {
			digest = pin.Absent
		}
		pins = append(pins, pin.Pin{Kind: r.Kind, Name: r.Name, Digest: pin.ShortDigest(digest)})
	}
	return pins
}

// isPinnable is true of what can be pinned: not the token of a ServiceAccount, which cannot be
// copied, and not what is ignored, which a container may read again while it runs.
func (w *Workload) isPinnable(r pin.Reference) bool {
	o := w.object(r)
	ignored := func(u content.Use) bool { return u.Object == o && u.Ignored }
	return !w.Config.IsToken(o) && !slices.ContainsFunc(w.Uses, ignored)
}

// Unpinned says, as clauses, what of the config cannot be pinned, and why.
func (w *Workload) Unpinned() []string {
	var said []string
	for i := range w.Uses {
		u := &w.Uses[i]
		r := pin.Reference{Kind: u.Object.Kind, Name: u.Object.Name}
		why := ""
		switch {
		case u.Object.Kind == content.SecretProviderClass:
			why = "the secrets store CSI driver mounts it"
		case u.Object.Namespace != w.Namespace:
			why = "it is in another namespace"
		case !slices.Contains(w.Pinning.References, r):
			why = "the containers and volumes of the Pod template do not refer to it"
		case u.Ignored:
			why = "it is ignored"
		case w.Config.IsToken(u.Object):
			why = "it is the token of a ServiceAccount"
		}
		if clause := u.Object.From(w.Namespace) + ": " + why; why != "" && !slices.Contains(said, clause) {
			said = append(said, clause)
		}
	}
	return said
}

func (w *Workload) object(r pin.Reference) content.Object {
	return content.Object{Kind: r.Kind, Namespace: w.Namespace, Name: r.Name}
}

// NeedsPins is true of a workload that keeps its config, and of which the Pod template has no
// pin for something that can be pinned.
func (w *Workload) NeedsPins() bool {
	if !w.Pinning.On {
		return false
	}
	if w.Pinning.Invalid != "" {
		return true
	}
	for _, r := range w.Pinning.References {
		if _, ok := w.Pinning.Pins.Of(r.Kind, r.Name); !ok && w.isPinnable(r) {
			return true
		}
	}
	return false
}

// PinnedDemand is what Pods of the template use that have these pins.
func (w *Workload) PinnedDemand(pins pin.Pins) content.Demand {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{vocabulary.Pins.Native: pins.String()}}}
	TemplateOf(w.Object).Spec.DeepCopyInto(&pod.Spec)
	if len(pins) == 0 || pin.Rewrite(pod) != nil {
		return content.Demand{Namespace: w.Namespace}
	}
	return content.DemandOf(w.Namespace, &pod.Spec, nil, false)
}

// LacksPinned is what such Pods need and the contents that they are pinned to do not have. A snapshot that is
// lost says nothing of what was in it.
func (w *Workload) LacksPinned(ctx context.Context, lookup *content.Lookup, pins pin.Pins) ([]content.Missing, error) {
	missing, err := lookup.Missing(ctx, w.PinnedDemand(pins))
	return slices.DeleteFunc(missing, func(m content.Missing) bool {
		i := slices.IndexFunc(pins, func(p pin.Pin) bool { return p.SnapshotIn(w.Namespace) == m.Object })
		return i < 0 || m.Key == "" && pins[i].HasSnapshot()
	}), err
}

// IsUndone is true if the Pod template has an earlier hash and pins, and the config has not
// changed since the workload was rolled for it: a user went back, and the config with it.
func (w *Workload) IsUndone() bool {
	a := &w.Records.Answered
	if len(w.Pinning.Pins) == 0 || w.Template.Hash == "" || w.Hashes == nil || a.Hash == "" {
		return false
	}
	for _, r := range w.Pinning.References {
		if w.Config.RetriedSince(w.object(r), a.At) {
			return false
		}
	}
	return a.Hash == w.Hashes.Desired || w.isAsSeen()
}

// isAsSeen is true if no object has changed since: then the hash is another one only because
// the Pod template refers to others.
func (w *Workload) isAsSeen() bool {
	seen, err := pin.Parse(w.Records.Answered.Seen)
	return err == nil && seen.Agree(w.PinsNow())
}

// afterRetries is a time at which all that users have asked to try again is answered. What they
// ask is dated up to a second ahead, and would end what is done within that second.
func (w *Workload) afterRetries(at time.Time) time.Time {
	latest := at
	for _, r := range w.Pinning.References {
		if retried := w.Config.RetriedAt(w.object(r), at.Add(retryAhead)); retried.After(latest) {
			latest = retried
		}
	}
	return latest
}

// retryAhead is by how much the time of a request to try again may lie ahead.
const retryAhead = 2 * time.Second

// AnswersNow is the record of the present config, if the one on the workload is another.
func (w *Workload) AnswersNow(at time.Time) (Answered, bool) {
	a := w.Records.Answered
	if len(w.Pinning.Pins) == 0 || w.Hashes == nil || a.Hash == w.Hashes.Desired {
		return a, false
	}
	now := Answered{Hash: w.Hashes.Desired, Seen: w.PinsNow().String(), At: w.afterRetries(at), Before: a.Before}
	if !w.hashIsRight() { // it is undone, and who did that stays known
		now.By, now.Reason = a.By, a.Reason
	}
	return now, true
}

// SetUndone records on a workload, beside an earlier revision that a user restores, what its
// objects contain: it is not rolled forward before one of them changes.
func SetUndone(obj client.Object, seen pin.Pins, at time.Time, by, reason string) {
	a := recordsOf(obj).Answered
	a = Answered{Hash: readTemplate(TemplateOf(obj), "").Hash, Seen: seen.String(), At: at, By: by, Reason: reason, Before: a.Before}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[vocabulary.ConfigAnswered.Native] = encode(a)
	obj.SetAnnotations(annotations)
}

// SetTemplatePins sets the pins of a Pod template, and a hash that stands for them.
func SetTemplatePins(t *corev1.PodTemplateSpec, pins pin.Pins, hash string) {
	_, hashName, ok := vocabulary.ConfigHash.Lookup(t.Annotations)
	if !ok {
		hashName = vocabulary.ConfigHash.Native
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[vocabulary.Pins.Native], t.Annotations[hashName] = pins.String(), hash
}

// HashOfPins stands for the hash of a config of which only the pins are known. It is never
// the hash of values.
func HashOfPins(pins pin.Pins) string {
	sum := sha256.Sum256([]byte("pins " + pins.String()))
	return hex.EncodeToString(sum[:])
}

// Runs is true if new Pods of the workload get this content of an object: it is not pinned
// to another one.
func (w *Workload) Runs(r content.Release) bool {
	p, ok := w.Pinning.Pins.Of(r.Object.Kind, r.Object.Name)
	return !ok || r.Object.Namespace != w.Namespace || p.Digest == pin.ShortDigest(r.Digest)
}

// Present is the config that the Pod template has, nil if it has no pins.
func (w *Workload) Present() *Before {
	if len(w.Pinning.Pins) == 0 || w.Template.Hash == "" {
		return nil
	}
	return &Before{Hash: w.Template.Hash, Pins: w.Pinning.Pins.String()}
}

// Parsed are the pins; none if they cannot be read, because a user edited them.
func (b *Before) Parsed() pin.Pins {
	if b == nil {
		return nil
	}
	pins, err := pin.Parse(b.Pins)
	if err != nil {
		return nil
	}
	return pins
}

// SetPins writes the pins of the present contents into the Pod template, or removes them from
// one of a workload that does not keep its config any more. It records the config to go back
// to.
func (e *Edit) SetPins(at time.Time, before *Before) {
	_, name, exists := vocabulary.Pins.Lookup(TemplateOf(e.w.Object).Annotations)
	pins := pin.Pins(nil)
	if e.w.Pinning.On {
		pins = e.w.PinsNow()
	}
	switch {
	case len(pins) > 0:
		e.add(pointer(templateAnnotations, vocabulary.Pins.Native), pins.String())
		e.annotate(vocabulary.ConfigAnswered, encode(Answered{Hash: e.w.Hashes.Desired, Seen: pins.String(), At: e.w.afterRetries(at), Before: before}))
	default:
		if exists {
			e.do("remove", pointer(templateAnnotations, name), nil)
		}
		e.drop(vocabulary.ConfigAnswered)
	}
}

// GoBack writes the config before into the Pod template, and records that the present one
// counts as undone.
func (e *Edit) GoBack(at time.Time) {
	a := e.w.Records.Answered
	e.SetTemplateHash(e.w.Template.HashName, a.Before.Hash)
	e.add(pointer(templateAnnotations, vocabulary.Pins.Native), a.Before.Pins)
	a.Seen, a.At, a.By, a.Reason = e.w.PinsNow().String(), at, "", ""
	e.SetAnswered(a)
}

// RestorePins writes the pins that the Pod template had before.
func (e *Edit) RestorePins(before *Workload) {
	if text, name, ok := vocabulary.Pins.Lookup(TemplateOf(before.Object).Annotations); ok {
		e.add(pointer(templateAnnotations, name), text)
	}
}

// SetAnswered records for which config an undo counts.
func (e *Edit) SetAnswered(a Answered) { e.annotate(vocabulary.ConfigAnswered, encode(a)) }
