package replay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/spillway-dev/spillway/rollout"
)

// hidden is the decision about the same tree in which no name of an object is left, and no sentence. The same name is hidden
// in the same way everywhere in the tree, so that what is equal stays so.
func (r *Recorder) hidden(d *Decision) *Decision {
	h := hider{}
	o := d.Observed
	o.Self = h.name(o.Self)
	o.Root = h.unit(o.Root)
	plan := rollout.Decide(o)
	return &Decision{Version: d.Version, Of: r.digest(d.Of), Observed: o, Decided: decided(&plan)}
}

// hider has the number of each name.
type hider map[string]string

func (h hider) name(name string) string {
	if name == "" || name == rollout.Removed {
		return name
	}
	if h[name] == "" {
		h[name] = "n" + strconv.Itoa(len(h)+1)
	}
	return h[name]
}

func (h hider) unit(u rollout.Unit) rollout.Unit {
	u.Name = h.name(u.Name)
	u.Policy.Shared, u.Policy.ApproveWith, u.Policy.Budget = "", "", h.name(u.Policy.Budget)
	if u.Pause != nil {
		u.Pause = &rollout.Pause{Since: u.Pause.Since}
	}
	if u.Block != nil {
		u.Block = &rollout.Block{Reason: u.Block.Reason, Message: h.name(u.Block.Message), Since: u.Block.Since, Until: u.Block.Until}
	}
	if u.Whole != nil {
		u.Whole = &rollout.Whole{Revision: h.name(u.Whole.Revision), Reason: u.Whole.Reason, Message: h.name(u.Whole.Message)}
	}
	if u.Lock != nil {
		u.Lock = &rollout.Lock{Holder: h.name(u.Lock.Holder), Purpose: u.Lock.Purpose, Unit: h.name(u.Lock.Unit), Since: u.Lock.Since}
	}
	l := &u.Leaf
	l.Current, l.Target, l.NoEvidence, l.Reason, l.RetryReason = h.name(l.Current), h.name(l.Target), h.name(l.NoEvidence), h.name(l.Reason), h.name(l.RetryReason)
	gates := make([]rollout.Gate, 0, len(u.Gates))
	for _, g := range u.Gates {
		g.Name, g.Message = h.name(g.Name), h.name(g.Message)
		gates = append(gates, g)
	}
	children := make([]rollout.Unit, 0, len(u.Children))
	for _, child := range u.Children {
		children = append(children, h.unit(child))
	}
	u.Gates, u.Children = gates, children
	return u
}

// digest tells which decisions are about the same. Its key, which no record has, keeps names from being guessed.
func (r *Recorder) digest(of string) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(of))
	return "hidden " + hex.EncodeToString(mac.Sum(nil)[:6])
}
