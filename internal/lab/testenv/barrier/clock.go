package barrier

import (
	"sync"
	"time"
)

// Clock is the clock of managers under test. It runs as the real one does, because API servers
// and kubelets stamp what they write, but a test may step it: a soak of an hour costs nothing,
// and no load makes it pass. The zero value is set to the real time.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration
	// due has each queue release what is due.
	due []func()
}

// Now is what the clock says.
func (c *Clock) Now() time.Time { return time.Now().Add(c.stepped()) }

// stepped is by how much the clock was stepped so far.
func (c *Clock) stepped() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// Step steps the clock, and wakes what is due then.
func (c *Clock) Step(by time.Duration) {
	c.mu.Lock()
	c.ahead += by
	due := c.due
	c.mu.Unlock()
	for _, release := range due {
		release()
	}
}

func (c *Clock) subscribe(release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = append(c.due, release)
}
