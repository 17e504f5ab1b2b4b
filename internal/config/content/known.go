package content

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Known is what was found out about the config that one workload uses. It is kept
// from one pass to the next to save work; the zero value knows nothing.
type Known struct {
	demand Demand
	// facts and denied were observed when the workload was at version.
	facts  Facts
	denied []string
	// leftOut says which extra objects of other namespaces do not count, and hidden is
	// true if wave may have counted one of them.
	leftOut []string
	hidden  bool
	version string
	// fingerprint is of the digests that count. The hashes were computed when it
	// was hashedFor; the values that were read then, which may have been newer, had
	// hashedAs.
	fingerprint, hashedFor, hashedAs [sha256.Size]byte
	hashes                           *Hashes
	// forbidden says which values could not be read, when last tried.
	forbidden []string
	// derived follows from the rest, and is empty after each change.
	derived derived
}

// derived is what many passes ask for, and what takes as long to compute as a workload has
// references.
type derived struct {
	// inputs is the result of [Known.Inputs] of some hash.
	inputs, inputsOf string
	// missing is that of [Known.Missing], uses of [Known.Uses].
	missing []Missing
	done    bool
	uses    []Use
}

// Use is a reference and what is known of its object.
type Use struct {
	Reference

	Exists bool
	// Ignored is true if its changes do not count.
	Ignored bool
}

// IsAmong is true if one of these keys, as [Facts.ChangedSince] names them, is one that
// counts.
func (u *Use) IsAmong(namespace string, keys []string) bool {
	return slices.ContainsFunc(keys, func(named string) bool {
		of, key := KeyNamed(named, namespace)
		return of == u.Object && u.UsesKey(key)
	})
}

// Missing is a required object that does not exist, or a required key of one.
type Missing struct {
	Object Object
	// Key is empty if the object itself does not exist.
	Key string
}

// String says what does not exist, as seen from a namespace.
func (m Missing) String(namespace string) string {
	if m.Key == "" {
		return m.Object.From(namespace) + " not found"
	}
	return m.Object.From(namespace) + " has no key " + m.Key
}

// Inputs identifies what a hash was computed from: the references, and the versions of
// their objects. It is a digest with the name of the workload as its key, so that it counts
// for no other one, and it says nothing of values. While it stays the same, so does the hash.
func (k *Known) Inputs(workload, hash string) string {
	if k.derived.inputs != "" && k.derived.inputsOf == hash {
		return k.derived.inputs
	}
	mac := hmac.New(sha256.New, []byte(inputsFormat+workload))
	_, _ = fmt.Fprintf(mac, "%q %+v", hash, k.scopes())
	for _, o := range slices.SortedFunc(maps.Keys(k.facts), Object.Compare) {
		_, _ = fmt.Fprintf(mac, "%q %v %q\n", o, k.facts[o].exists, k.facts[o].version)
	}
	k.derived.inputs, k.derived.inputsOf = hex.EncodeToString(mac.Sum(nil)[:digestSize]), hash
	return k.derived.inputs
}

// inputsFormat changes with what [Known.Inputs] covers, and with how hashes are computed.
const inputsFormat = "1 "

// Facts are what was observed last.
func (k *Known) Facts() Facts { return k.facts }

// Denied says, as sentences, what must not be read and how to fix it.
func (k *Known) Denied() []string { return slices.Concat(k.denied, k.forbidden) }

// LeftOut says, as sentences, which extra objects of other namespaces do not count, and
// how to fix it.
func (k *Known) LeftOut() []string { return k.leftOut }

// HidesWave is true if wave may have counted an object that must not be read, so that
// its hash cannot be computed.
func (k *Known) HidesWave() bool { return k.hidden }

// Hashes are of the present contents; nil if they are not known.
func (k *Known) Hashes() *Hashes {
	if k.hashedFor == k.fingerprint || k.hashedAs == k.fingerprint {
		return k.hashes
	}
	return nil
}

// IsComplete is true if nothing is missing, and nothing is denied: the hashes can
// be computed.
func (k *Known) IsComplete() bool { return len(k.denied) == 0 && len(k.Missing()) == 0 }

// Missing is what a Pod cannot start without and does not exist, each once. It is not changed.
func (k *Known) Missing() []Missing {
	if d := &k.derived; !d.done {
		d.missing, d.done = k.findMissing(), true
	}
	return k.derived.missing
}

// Uses are the references of the workload, with what is known of each. They are not changed.
func (k *Known) Uses() []Use {
	if k.derived.uses == nil {
		k.derived.uses = k.findUses()
	}
	return k.derived.uses
}

func (k *Known) findUses() []Use {
	ignored := k.scope().ignored
	uses := make([]Use, 0, len(k.demand.Uses))
	for _, ref := range k.demand.Uses {
		uses = append(uses, Use{
			Reference: ref,
			Exists:    k.facts[ref.Object].exists,
			Ignored:   slices.ContainsFunc(ignored, func(i Reference) bool { return i.covers(ref.Object) }),
		})
	}
	return uses
}

func (k *Known) findMissing() []Missing {
	var missing []Missing
	known := map[Missing]bool{}
	add := func(m Missing) {
		if !known[m] {
			known[m], missing = true, append(missing, m)
		}
	}
	for _, ref := range k.demand.Uses {
		f := k.facts[ref.Object]
		if !f.exists && ref.Required {
			add(Missing{Object: ref.Object})
		}
		for _, use := range ref.Keys {
			if _, ok := f.digests[use.Name]; f.exists && use.Required && !ok {
				add(Missing{Object: ref.Object, Key: use.Name})
			}
		}
	}
	return missing
}

// refresh computes the fingerprint of what was observed. It returns true if
// config that counts has changed since the hashes were computed.
func (k *Known) refresh() bool {
	before := k.fingerprint
	if k.fingerprint = fingerprint(k.scope(), k.facts); k.fingerprint != before { // from now on the hashes are of what was read alone
		k.hashedFor = k.hashedAs
	}
	return before != [sha256.Size]byte{} && k.fingerprint != before && k.fingerprint != k.hashedAs
}

func (k *Known) scopes() scopes {
	own := k.scope()
	return scopes{
		own:       own,
		wave:      scope{namespace: own.namespace, refs: k.demand.Wave, merged: true},
		unignored: scope{namespace: own.namespace, refs: own.refs},
	}
}

// scope is what counts now; the ignored objects are left out of it.
func (k *Known) scope() scope {
	ignored := slices.Clone(k.demand.Ignored)
	own := len(ignored)
	for o, f := range k.facts {
		if f.ignored {
			ignored = append(ignored, Reference{Object: o})
		}
	}
	slices.SortFunc(ignored[own:], func(a, b Reference) int { return a.Object.Compare(b.Object) })
	return scope{namespace: k.demand.Namespace, refs: k.demand.Uses, ignored: ignored}
}

// fingerprint is a digest of all digests that count in a scope. A reference
// without any value for the Pods does not change it.
func fingerprint(s scope, known Facts) [sha256.Size]byte {
	h := sha256.New()
	for _, ref := range without(s.refs, s.ignored) {
		digests := known[ref.Object].digests
		used := keys(s, ref, digests)
		if len(used) == 0 {
			continue
		}
		h.Write([]byte(ref.Object.Kind + "\x00" + Kind(s.slot(ref.Object)) + "\x00"))
		for _, key := range used {
			h.Write([]byte(key + "\x00" + digests[key]))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
