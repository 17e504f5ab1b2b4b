package certificate

import "time"

// confirmAfter is how long a configuration stands as it is before it is written once more.
//
// An API server keeps what it has made of a configuration by its name, until the next change of it. One that is
// making it of the former content while the next one arrives stores the former, and goes on with that: it calls
// without the CA or the key until a client writes the configuration again (getMutatingWebhookConfigurations of
// k8s.io/apiserver, seen in 1.37 about once in 5,000 changes under load). A second write, when each API server has
// long read the first, leaves none with what was before it. What an API server has cannot be asked for, and there may
// be several: so this waits for time.
const confirmAfter = 5 * time.Second

// confirmsBy reports whether the write that confirms is due.
func (c *configuration) confirmsBy(now time.Time) bool {
	return !c.confirmAt.IsZero() && !now.Before(c.confirmAt)
}

// contents remember since when configurations are as they are. It is forgotten with the process, and then counts
// from its start.
type contents map[string]*content

type content struct {
	name  string
	since time.Time
	// confirmed is true once this process has confirmed it: a client that removes annotations is not contradicted.
	confirmed bool
}

// look says of configurations when they are due to be confirmed.
func (s contents) look(o *observed) {
	for i := range o.configurations {
		c := &o.configurations[i]
		at := s[c.id()]
		if at == nil || at.name != c.content {
			at = &content{name: c.content, since: o.now}
			s[c.id()] = at
		}
		if c.confirmed != c.content && !at.confirmed {
			c.confirmAt = at.since.Add(confirmAfter)
		}
	}
}

// wrote notes a write that confirms.
func (s contents) wrote(i *injection) { s[i.configuration.id()].confirmed = true }
