package rollout

// untilLost is why a leaf waits that is down and may recover: until it may not any more, as what
// waits for it asks for how long. What ends sooner stays as it is.
func (d *decision) untilLost(n *node, c *cause) *cause {
	leaf := &n.unit.Leaf
	if c == nil || !n.isDown() || !leaf.MayRecover || !leaf.RecoversBy.After(d.now) {
		return c
	}

	if !c.until.IsZero() && c.until.Before(leaf.RecoversBy) {
		return c
	}

	own := *c
	own.until = leaf.RecoversBy
	until := "; " + n.name() + " may recover until " + Clock(leaf.RecoversBy)

	if own.said.why == "" {
		own.said.does += until
	} else {
		own.said.why += until
	}

	return &own
}
