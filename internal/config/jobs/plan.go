package jobs

import (
	"fmt"
	"strings"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// plan is what to do about a Job that is held.
type plan struct {
	// state is what the Job says from now on.
	state string
	// pins are those that it gets with the write that resumes it, and snapshots what has to exist
	// before.
	pins      pin.Pins
	snapshots []snapshots.Key
}

// resumes is true if the Job starts.
func (p *plan) resumes() bool { return strings.HasPrefix(p.state, pin.JobPinned) }

// decide is pure: a Job whose config exists starts, and another one waits for it.
func decide(o *observed) plan {
	namespace := o.job.Namespace
	if o.refused != "" {
		return plan{state: pin.JobPinned + " without pins: " + o.refused}
	}
	if missing := o.config.Missing(); len(missing) > 0 {
		return waits(message.Join(missing, ", ", func(m content.Missing) string { return m.String(namespace) }))
	}
	if denied := o.config.Denied(); len(denied) > 0 {
		return waits(denied[0])
	}
	p := plan{state: pin.JobPinned, pins: pinsOf(o)}
	if !p.pins.Fits() {
		return plan{state: fmt.Sprintf("%s without pins: it refers to more than %d ConfigMaps and Secrets, or their names are too long", pin.JobPinned, pin.Most)}
	}
	for _, of := range p.pins {
		if of.HasSnapshot() {
			p.snapshots = append(p.snapshots, snapshots.Key{Namespace: namespace, Pin: of})
		}
	}
	return p
}

func waits(why string) plan {
	return plan{state: "waiting: " + message.Cut(why, message.ValueLength)}
}

// pinsOf are the pins of the present config. The token of a ServiceAccount cannot be copied.
func pinsOf(o *observed) pin.Pins {
	var pins pin.Pins
	for _, r := range o.references {
		of := content.Object{Kind: r.Kind, Namespace: o.job.Namespace, Name: r.Name}
		if o.config.Facts().IsToken(of) {
			continue
		}
		digest, exists := o.config.Facts().DigestOf(of)
		if !exists {
			digest = pin.Absent
		}
		pins = append(pins, pin.Pin{Kind: r.Kind, Name: r.Name, Digest: pin.ShortDigest(digest)})
	}
	return pins
}

// change is the write for a plan, as a merge patch; nil if the Job says so already.
func (p *plan) change(o *observed) map[string]any {
	if vocabulary.JobPins.Get(o.job.Annotations) == p.state {
		return nil
	}
	change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{vocabulary.JobPins.Native: p.state}}}
	if !p.resumes() {
		return change
	}
	spec := map[string]any{"suspend": false}
	if len(p.pins) > 0 {
		annotations := map[string]any{vocabulary.Pins.Native: p.pins.String()}
		spec["template"] = map[string]any{"metadata": map[string]any{"annotations": annotations}}
	}
	change["spec"] = spec
	return change
}
