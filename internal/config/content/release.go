package content

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Release is an object with one content: what workloads that use it are rolled for.
type Release struct {
	Object Object
	// Digest identifies the content. It is a digest with the UID of the object as its key,
	// so that who may not read the object cannot try guesses of its values.
	Digest string
}

// absent stands for the digest of an object that does not exist.
const absent = "absent"

// From names the release as seen from a namespace: "Secret db@9676b5e".
func (r Release) From(namespace string) string {
	return r.Object.From(namespace) + "@" + r.Digest[:min(len(r.Digest), shownDigits)]
}

// CutRelease is what [Release.From] has named: the object, and the digest of its content. A text
// without a digest is both.
func CutRelease(text string) (object, digest string) {
	i := strings.LastIndex(text, "@")
	if i < 0 {
		return text, text
	}
	return text[:i], text[i+1:]
}

// ReleaseNamed is the release that [Release.From] has named as seen from a namespace, with the first digits of the
// digest.
func ReleaseNamed(text, namespace string) Release {
	object, digest := CutRelease(text)
	return Release{ObjectNamed(object, namespace), digest}
}

// shownDigits are as many as Git shows.
const shownDigits = 7

// release is what the annotations of an object ask for of its releases.
type release struct {
	// unstoppable is true if failures do not stop it.
	unstoppable bool
	// stoppedBy lists the namespaces whose failures stop it in all others.
	stoppedBy string
	// retried is when a user asked to try again what has failed.
	retried time.Time
	// onFailure is what happens to workloads that fail with it: Rollback, Stop, or empty.
	onFailure string
}

// What happens to a workload that has failed with a change of its config.
const (
	OnFailureRollback = "Rollback"
	OnFailureStop     = "Stop"
)

// RetriedBy is when a user asked last to try again what has failed with an object that has
// these annotations, zero if never.
func RetriedBy(annotations map[string]string) time.Time {
	retried, _ := time.Parse(time.RFC3339, vocabulary.RetryConfig.Get(annotations))
	return retried.Truncate(time.Millisecond) // as rolls are recorded: what is rolled at that moment is after it
}

func releaseOf(annotations map[string]string) release {
	return release{
		unstoppable: vocabulary.StopOnFailure.Get(annotations) == "false",
		stoppedBy:   vocabulary.StoppedBy.Get(annotations), retried: RetriedBy(annotations),
		onFailure: vocabulary.OnConfigFailure.Get(annotations),
	}
}

// Release is the present release of an object; false if its changes are never stopped,
// because the object says so, or because Pods get it by the driver alone.
func (f Facts) Release(o Object) (Release, bool) {
	of, known := f[o]
	if !known || of.unstoppable || of.ignored || o.Kind == SecretProviderClass {
		return Release{}, false
	}
	return Release{Object: o, Digest: of.digest()}, true
}

// RetriedAt is when a user asked to try again what has failed with an object; zero if never,
// and while that is in the future.
func (f Facts) RetriedAt(o Object, now time.Time) time.Time {
	if at := f[o].retried; !at.After(now) {
		return at
	}
	return time.Time{}
}

// OnFailure is what the object says of workloads that fail with it: Rollback, Stop, or
// something else if it says nothing.
func (f Facts) OnFailure(o Object) string { return f[o].onFailure }

// RetriedSince is true if a user has asked after a time to try again what has failed with an
// object.
func (f Facts) RetriedSince(o Object, at time.Time) bool { return f[o].retried.After(at) }

// Retries are when users asked to try again.
func (f Facts) Retries() []time.Time {
	var at []time.Time
	for _, of := range f {
		if !of.retried.IsZero() {
			at = append(at, of.retried)
		}
	}
	return at
}

// CountsIn is true if a failure of a workload in one namespace stops the releases of an
// object in another one: the owner of an object may stop what it shares, and says who else may.
func (f Facts) CountsIn(o Object, failed, stopped string) bool {
	return failed == stopped || failed == o.Namespace || vocabulary.IsSharedWith(f[o].stoppedBy, failed)
}

func (f fact) digest() string {
	if !f.exists {
		return absent
	}
	return f.digestOf(f.uid)
}

// digestOf is the digest of the content as that of an object with a UID.
func (f fact) digestOf(uid string) string {
	return hex.EncodeToString(f.sum(uid)[:digestSize/2])
}

// sum is the content under a key.
func (f fact) sum(secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	for _, key := range slices.Sorted(maps.Keys(f.digests)) {
		_, _ = fmt.Fprintf(mac, "%q %q\n", key, f.digests[key])
	}
	return mac.Sum(nil)
}

// ContentOf is the same for all objects with the same content. It must not leave the memory: who may not read
// an object could try guesses of its values.
func (f Facts) ContentOf(o Object) string {
	of := f[o]
	if !of.exists {
		return absent
	}
	return string(of.sum(""))
}

// DigestAt is the digest that the content of an object has where another object has it, of which others are the
// facts: what is recorded of that one can be compared with it.
func (f Facts) DigestAt(o Object, others Facts, at Object) string {
	of := f[o]
	if !of.exists {
		return absent
	}
	return of.digestOf(others[at].uid)
}

// DigestOf is the digest of the present content of an object, as in its [Release].
func (f Facts) DigestOf(o Object) (digest string, exists bool) {
	of := f[o]
	return of.digest(), of.exists
}

// Exists is true of an object that exists, as far as the caller may read it.
func (f Facts) Exists(o Object) bool { return f[o].exists }

// IsToken is true of the token of a ServiceAccount, which cannot be copied.
func (f Facts) IsToken(o Object) bool { return f[o].token }

// DigestAs is the digest of the content of an object that was reduced by [Digest], as that
// of an object with a UID.
func DigestAs(obj client.Object, uid string) string { return factOf(obj).digestOf(uid) }
