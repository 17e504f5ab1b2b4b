package certificate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/admission/serve"
)

// asked is what is observed of a good certificate with these keys, and one configuration whose
// webhook has this path.
func asked(t *testing.T, path string, keys ...pathKey) observed {
	t.Helper()
	m := fresh(t)
	c := configuration{name: "a", resourceVersion: "1", bundled: true, hooks: []hook{{name: "w", bundle: m[keyBundle], host: hosts[0], path: path}}}
	return observed{
		now: dayOne, hosts: hosts, material: m, generated: true, keys: keys, configurations: []configuration{c},
		served: map[string]bool{"/a": true, "/a/b": true}, registered: map[string]string{"w": "/a"},
	}
}

// A key is put only where it is of use to us: at a path of ours, on a host that is ours.
func TestWhereAKeyIsPut(t *testing.T) {
	key, old := pathKey{serve.NewKey(), dayOne}, serve.NewKey()
	for name, test := range map[string]struct {
		path, host, want string
		own              bool
	}{
		"a path of ours":                   {path: "/a", want: "/a/" + key.key},
		"one below another":                {path: "/a/b", want: "/a/b/" + key.key},
		"with a former key":                {path: "/a/b/" + old, want: "/a/b/" + key.key},
		"with the key":                     {path: "/a/" + key.key},
		"of another server":                {path: "/x"},
		"below a path of ours":             {path: "/a/x"},
		"none, in a configuration of ours": {own: true, want: "/a/" + key.key},
		"none, in one of a user":           {},
		"on another host":                  {path: "/a", host: "evil.default.svc"},
	} {
		o := asked(t, test.path, key)
		o.configurations[0].own = test.own
		if test.host != "" {
			o.configurations[0].hooks[0].host = test.host
		}
		var got string
		for _, i := range decide(o).injections {
			got = i.paths[0]
		}
		if got != test.want {
			t.Errorf("%s: it writes %q, want %q", name, got, test.want)
		}
	}
}

// A key lives for a day, and the one before is accepted for an hour longer, or while a
// configuration has it. It is written before it is used.
func TestAKeyLivesForADay(t *testing.T) {
	o := asked(t, "/a")
	p := decide(o)
	if !p.rotates || len(p.injections) > 0 || len(p.accept) > 0 {
		t.Fatalf("without a key: %+v", p)
	}
	write := func() {
		m, err := p.make(o)
		if err != nil {
			t.Fatal(err)
		}
		o.keys = parseKeys(m[keyPaths])
		p = decide(o)
	}
	inject := func() {
		o.configurations[0].hooks[0].path = p.injections[0].paths[0]
		p = decide(o)
	}
	write()
	first := o.keys[0].key
	if p.rotates || !slices.Equal(p.accept, []string{first}) || p.injections[0].paths[0] != "/a/"+first {
		t.Fatalf("with a key: %+v", p)
	}
	inject()
	o.now = o.now.Add(pathLife - time.Second)
	if p = decide(o); p.writes() || len(p.injections) > 0 {
		t.Errorf("before a day is over: %+v", p)
	}
	o.now = o.now.Add(time.Second)
	p = decide(o)
	write()
	second := o.keys[0].key
	if second == first || !slices.Equal(p.accept, []string{second, first}) {
		t.Errorf("after a day %v is accepted", p.accept)
	}
	o.now = o.now.Add(2 * pathGrace)
	if p = decide(o); !slices.Equal(p.accept, []string{second, first}) {
		t.Errorf("a configuration that has the former key is not answered: %v", p.accept)
	}
	inject()
	if !slices.Equal(p.accept, []string{second}) {
		t.Errorf("the former key is accepted for ever: %v", p.accept)
	}
	o.elected = o.now.AddDate(1, 0, 0) // by a clock that was wrong
	if p = decide(o); p.rotates {
		t.Error("it makes a key for an election that is to come")
	}
	o.elected = o.now
	if p = decide(o); !p.rotates {
		t.Error("a new leader keeps the key that was shown while none led")
	}
	write()
	if p.rotates {
		t.Error("it makes keys for ever")
	}
	if raw := string(encodeKeys(o.keys)); strings.Count(raw, "\n") != 2 {
		t.Errorf("there are more than two keys: %q", raw)
	}
}

// A client that puts the path back is not fought with in a hot loop; one that applies its manifest
// now and then is corrected immediately.
func TestAPathThatIsPutBack(t *testing.T) {
	for name, test := range map[string]struct {
		every  time.Duration
		writes int
	}{"immediately": {time.Second, 25}, "now and then": {10 * time.Minute, 6}} {
		o := asked(t, "/a", pathKey{serve.NewKey(), dayOne})
		p, writes, version := putBack{}, 0, 1
		wrote := dayOne
		for ; o.now.Before(dayOne.Add(time.Hour)); o.now = o.now.Add(time.Second) {
			c := &o.configurations[0]
			if c.hooks[0].path != "/a" && o.now.Sub(wrote) >= test.every {
				version++
				c.hooks[0].path, c.resourceVersion = "/a", string(rune(version))
			}
			p.look(&o)
			for _, i := range decide(o).injections {
				p.wrote(&i, o.now)
				wrote = o.now
				writes++
				version++
				c.hooks[0].path, c.resourceVersion = i.paths[0], string(rune(version))
			}
		}
		if writes > test.writes || writes < 6 {
			t.Errorf("%s: %d writes in an hour, want at most %d", name, writes, test.writes)
		}
	}
}
