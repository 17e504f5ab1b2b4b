package workload

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Records are what the ring wrote about a workload. What stands on it must stay there: it describes the Pod template of the same
// object, and has to come and go with it. What must outlive an edit of the workload is in ConfigRollouts.
type Records struct {
	// Roll is how the template got its hash: it is part of the request that sets it, which may be one of a user that
	// admission answers and that is refused later. What a verdict rests on is recorded besides (ConfigBefore).
	Roll Roll
	// Adopted is what is recorded where the manager alone writes, Baseline what stands on the workload: an earlier
	// manager wrote it, or one that could not record it.
	Adopted, Baseline Baseline
	// Condition is the one on the workload now, nil if there is none. It is for people who read the workload and may not
	// read ConfigRollouts.
	Condition *Condition
	// Failed are the releases with which it has failed: those Recorded where the manager alone writes,
	// and those that an earlier manager has recorded on the workload.
	Failed, Recorded []Failed
	// Answered is what a workload with pins was rolled for: a user who undoes that writes it too, with permission for the
	// workload alone.
	Answered Answered
}

// Failed is a release of config with which a workload has failed.
type Failed struct {
	// Kind, Namespace and Name are those of the object, Digest is that of its content.
	Kind      content.Kind `json:"kind"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	Digest    string       `json:"digest"`
	At        time.Time    `json:"at"`
	// Cause is how: "3 of 3 Pods CrashLoopBackOff".
	Cause string `json:"cause"`
	// Hash is that of the Pod template that has failed.
	Hash string `json:"hash,omitempty"`
}

// Object is the object that was released.
func (f *Failed) Object() content.Object {
	return content.Object{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name}
}

// Is is true if it is the release that has failed.
func (f *Failed) Is(r content.Release) bool { return f.Object() == r.Object && f.Digest == r.Digest }

// The reason that decides what a hash means.
const (
	// ReasonConfigMissing: config that a Pod cannot start without does not exist.
	// Action: create the object or the key that the message names.
	ReasonConfigMissing rollout.Reason = "ConfigMissing"
)

// FailedWith records that a Pod template with a hash has failed with a release.
func FailedWith(r content.Release, at time.Time, cause, hash string) Failed {
	o, cause := r.Object, message.Cut(cause, message.ValueLength)
	return Failed{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Digest: r.Digest, At: at, Cause: cause, Hash: hash}
}

// MostFailed bounds how many failures are recorded on a workload.
const MostFailed = 20

// Roll is the last roll.
type Roll struct {
	// At is when the ring wrote the hash, zero if never.
	At time.Time `json:"at,omitzero"`
	// Admitted is when admission last set it, in a write by a user.
	Admitted time.Time `json:"admitted,omitzero"`
	// Was is the hash before that, or before the roll of a workload that was not ready; empty if it
	// had none.
	Was string `json:"was,omitempty"`
	// Changed names what had changed: "ConfigMap app: LOG_LEVEL".
	Changed []string `json:"changed,omitempty"`
	// Template is a digest of the Pod template that was rolled, without the hash:
	// once the template is another, the health of the Pods no longer shows the result
	// of this roll.
	Template string `json:"template,omitempty"`
	// Inputs identifies what the hash was computed from, so that a manager that begins reads
	// only what has changed since.
	Inputs string `json:"inputs,omitempty"`
	// Of is a mark of the hash: what a tool has restored of an earlier roll does not count for another one.
	Of string `json:"of,omitempty"`
	// Got are marks of the contents that the workload got with the hash, so that a manager that
	// begins knows which of them have changed since, and for which others may wait for it.
	Got []string `json:"got,omitempty"`
	// Hash is what a StatefulSet was rolled to, so that a Pod that waits with it in vain is
	// known as the ring's also where a user was faster to undo it than the ring to see it fail.
	Hash string `json:"hash,omitempty"`
	// Unready is true if the workload was not ready before, for another reason than its
	// config: then that it is not ready afterwards says nothing of the config. What its new Pods
	// do does: they are compared with the Pods before, of which so many were Available, and some
	// were Failing for this reason, empty if none was.
	Unready   bool   `json:"unready,omitempty"`
	Available int32  `json:"available,omitempty"`
	Failing   string `json:"failing,omitempty"`
	// Over are the hashes that the ring had rolled before, and with which a StatefulSet was not
	// ready when it was rolled again: a Pod may wait with one of them in vain.
	Over []string `json:"over,omitempty"`
	// Back is why the workload got its previous config back, empty if it was rolled for
	// another reason. Changed is then what had changed before.
	Back string `json:"back,omitempty"`
}

// Condition is a Kubernetes condition, stored as JSON in an annotation because the
// status of a workload is its controller's.
type Condition struct {
	Type    string         `json:"type"`
	Status  string         `json:"status"`
	Reason  rollout.Reason `json:"reason"`
	Message string         `json:"message"`
	Since   time.Time      `json:"lastTransitionTime"`
}

// Equal compares two conditions, either of which may be nil for none.
func (c *Condition) Equal(other *Condition) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Type == other.Type && c.Status == other.Status &&
		c.Reason == other.Reason && c.Message == other.Message && c.Since.Equal(other.Since)
}

// LastRoll is when a config change last rolled a workload, and why; the zero value
// if none has.
func LastRoll(workload client.Object) Roll { return recordsOf(workload).Roll }

// Remember adds what is recorded of the workload where the manager alone writes. A failure with the
// hash that it is to have now is one with the present content, also if the object was created again:
// its digest is another one then.
func (w *Workload) Remember(recorded []Failed) {
	w.Records.Recorded = recorded
	failed := slices.Clone(recorded)
	for i := range failed {
		f := &failed[i]
		r, ok := w.Config.Release(f.Object())
		if ok && f.Hash != "" && w.Hashes != nil && w.Hashes.Desired == f.Hash && w.Config.IsCreatedSince(f.Object(), f.At) {
			f.Digest = r.Digest
		}
	}
	for _, f := range w.Records.Failed {
		if !slices.ContainsFunc(failed, f.IsAgain) {
			failed = append(failed, f)
		}
	}
	w.Records.Failed = failed
}

// IsAgain is true of a failure with the same content.
func (f *Failed) IsAgain(g Failed) bool { return g.Object() == f.Object() && g.Digest == f.Digest }

// MarksFailed is true if an earlier manager has recorded on the workload with what it has failed.
func (w *Workload) MarksFailed() bool {
	_, _, marked := vocabulary.ConfigFailed.Lookup(w.Object.GetAnnotations())
	return marked
}

// AwaitsRetry is true if a workload has a record that a retry of an object ends: an earlier manager
// has recorded that it failed with the object, or a user went back from its content, after the last
// retry.
func AwaitsRetry(obj client.Object, of content.Object, retried time.Time) bool {
	r := recordsOf(obj)
	if slices.ContainsFunc(r.Failed, func(f Failed) bool { return f.Object() == of && !retried.After(f.At) }) {
		return true
	}
	has, err := pin.Parse(vocabulary.Pins.Get(TemplateOf(obj).Annotations))
	seen, unseen := pin.Parse(r.Answered.Seen)
	if err != nil || unseen != nil || of.Namespace != obj.GetNamespace() || retried.After(r.Answered.At) {
		return false
	}
	mine, isPinned := has.Of(of.Kind, of.Name)
	newest, wasSeen := seen.Of(of.Kind, of.Name)
	return isPinned && wasSeen && mine != newest
}

// recordsOf reads what earlier passes wrote on a workload. What cannot be read,
// because a user edited it, counts as absent.
func recordsOf(obj client.Object) Records {
	annotations := obj.GetAnnotations()
	r := Records{}
	_ = json.Unmarshal([]byte(vocabulary.ConfigChange.Get(annotations)), &r.Roll)
	c := &Condition{}
	if err := json.Unmarshal([]byte(vocabulary.ConfigStatus.Get(annotations)), c); err == nil {
		r.Condition = c
	}
	if err := json.Unmarshal([]byte(vocabulary.ConfigFailed.Get(annotations)), &r.Failed); err != nil {
		r.Failed = nil
	}
	if err := json.Unmarshal([]byte(vocabulary.ConfigAnswered.Get(annotations)), &r.Answered); err != nil {
		r.Answered = Answered{}
	}
	r.Failed = r.Failed[:min(len(r.Failed), MostFailed)]
	for i := range r.Failed {
		r.Failed[i].Cause = message.Cut(r.Failed[i].Cause, message.ValueLength) // it may be shown in other namespaces
	}
	r.Baseline.Template, r.Baseline.Scope, _ = strings.Cut(vocabulary.ConfigBaseline.Get(annotations), ":")
	r.Baseline.Scope, r.Baseline.First, _ = strings.Cut(r.Baseline.Scope, ":")
	return r
}

// encode is a record as it is stored in its annotation.
func encode(record any) string {
	raw, err := json.Marshal(record)
	if err != nil {
		return ""
	}
	return string(raw)
}
