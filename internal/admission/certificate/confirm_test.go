package certificate

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/admission/serve"
)

// Each content of a configuration is written once more a while after it came to stand there, written by whatever client; not
// before, not while something else is to be written, and not again by this process or the next one.
func TestAContentIsConfirmedOnce(t *testing.T) {
	o := asked(t, "/a", pathKey{serve.NewKey(), dayOne})
	c := &o.configurations[0]
	s, generation := contents{}, 1
	var at []time.Duration
	for ; o.now.Before(dayOne.Add(40 * time.Second)); o.now = o.now.Add(time.Second) {
		switch o.now.Sub(dayOne) {
		case 10 * time.Second:
			c.hooks[0].bundle = []byte("of another client")
			generation++
		case 20 * time.Second: // that is put right, and the annotation removed by another client
			c.confirmed = ""
		case 30 * time.Second: // another process
			c.confirmed, s = c.content, contents{}
		}
		c.content, c.confirmAt = strconv.Itoa(generation), time.Time{}
		s.look(&o)
		for _, i := range decide(o).injections {
			switch {
			case i.confirms && i.paths == nil && i.bundle == nil:
				at, c.confirmed = append(at, o.now.Sub(dayOne)), c.content
				s.wrote(&i)
				continue
			case i.paths != nil:
				c.hooks[0].path = i.paths[0]
			case i.bundle != nil:
				c.hooks[0].bundle = i.bundle
			}
			generation++
		}
	}
	if want := []time.Duration{6 * time.Second, 16 * time.Second}; !slices.Equal(at, want) {
		t.Errorf("confirmed at %v, want %v", at, want)
	}
}
