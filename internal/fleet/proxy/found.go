package proxy

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// A hub that was rebuilt knows nothing of its clusters but what lies there. It looks before it
// assigns anything, takes over what it finds, whichever revision that is, and goes on from there.
// What a cluster says of itself is good for that cluster: the content that is found there is not
// copied to the hub, from which it could get to others.

const (
	// copiesLength bounds the copies of what modules gave up in the annotation of an Assemblage,
	// of which all together may have 256 KiB.
	copiesLength = 64 << 10
	// saidLength bounds what such a copy says.
	saidLength = 200
	// overridesMost is how many overrides a revision has at most.
	overridesMost = 32
	// unnamed is the revision of a sync of which it is not known.
	unnamed = "unknown"
)

// leave leaves a sync as it was found.
func (d *decision) leave(s *v1alpha1.ProxySync) {
	live := d.liveSync(s.Name)
	if live == nil {
		state, reason, said := d.obstacle()
		if state == "" {
			state, reason, said = v1alpha1.StateWaiting, outcome.ReasonNotAssigned, "what was found is not there any more"
		}
		d.say(s, state, reason, said)
		return
	}
	entry := *live
	entry.DeletionPolicy = s.DeletionPolicy
	d.entries = append(d.entries, entry)
	d.judge(s, &entry)
}

// isTaken is true if the hub has taken over all that it has found: every sync is the one that
// was found, or the same.
func (d *decision) isTaken() bool {
	syncs := map[string]*v1alpha1.ProxySync{}
	for i := range d.o.Proxy.Spec.Assemblage.Syncs {
		syncs[d.o.Proxy.Spec.Assemblage.Syncs[i].Name] = &d.o.Proxy.Spec.Assemblage.Syncs[i]
	}
	for i := range d.entries {
		live := d.liveSync(d.entries[i].Name)
		if live == nil || !syncs[live.Name].Found && !isSameButMoment(live, &d.entries[i]) {
			return false
		}
	}
	return len(d.needs) == 0 && namesOf(d.entries) == vocabulary.SentSyncs.Get(d.o.Live.Annotations)
}

// found is what is on a cluster to which nothing was sent, nil of others and until that is known.
func (d *decision) found() *v1alpha1.Found {
	was := d.o.Proxy.Status.Found
	switch {
	case d.o.Problem != nil || d.o.Refused != "":
		if was == nil && len(d.o.Proxy.Status.Syncs) == 0 {
			return &v1alpha1.Found{Silent: true}
		}
		return was
	case d.isFormer() && d.adoption() == "":
		return &v1alpha1.Found{Syncs: d.foundSyncs()}
	case len(d.entries) == 0:
		return &v1alpha1.Found{}
	default:
		return nil
	}
}

// foundSyncs are the syncs that a former hub has sent, with what their modules gave up. The
// cluster may say what it likes: what cannot be a name is none.
func (d *decision) foundSyncs() []v1alpha1.FoundSync {
	sent := strings.Split(vocabulary.SentSyncs.Get(d.o.Live.Annotations), ",")
	copies := map[string]*v1alpha1.GivenUp{}
	if err := json.Unmarshal([]byte(vocabulary.GivenUp.Get(d.o.Live.Annotations)), &copies); err != nil {
		copies = nil
	}
	var found []v1alpha1.FoundSync
	for i := range d.o.Live.Spec.Syncs {
		live := &d.o.Live.Spec.Syncs[i]
		if !slices.Contains(sent, live.Name) {
			continue
		}
		f := v1alpha1.FoundSync{Name: live.Name, Revision: live.Revision, AssignedAt: live.AssignedAt, Unready: live.Unready}
		for _, override := range live.Overrides[:min(len(live.Overrides), overridesMost)] {
			if isName(override) {
				f.Overrides = append(f.Overrides, override)
			}
		}
		if !isName(f.Revision) {
			f.Revision = unnamed
		}
		if given := copies[live.Name]; given != nil && isName(given.Revision) && (given.Cluster == "" || isName(given.Cluster)) {
			given.Message = message.Cut(given.Message, saidLength)
			f.GivenUp = given
		}
		found = append(found, f)
	}
	return found
}

func isName(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }

// givenUp are the copies of what the modules of a cluster gave up, empty if there are none. Where
// they are too long, those that would not fit are left out: they lie with other clusters, too.
func (d *decision) givenUp() string {
	copies, length := map[string]*v1alpha1.GivenUp{}, 0
	for i := range d.o.Proxy.Spec.Assemblage.Syncs {
		s := &d.o.Proxy.Spec.Assemblage.Syncs[i]
		if s.GivenUp == nil {
			continue
		}
		raw, err := json.Marshal(s.GivenUp)
		if length += len(raw) + len(s.Name); err != nil || length > copiesLength {
			continue
		}
		copies[s.Name] = s.GivenUp
	}
	if len(copies) == 0 {
		return ""
	}
	raw, err := json.Marshal(copies)
	if err != nil {
		return ""
	}
	return string(raw)
}
