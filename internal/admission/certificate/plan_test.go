package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	dayOne = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hosts  = []string{"spillway-webhooks.spillway-system.svc", "127.0.0.1"}
)

// fresh is material that was made on day one.
func fresh(t *testing.T) material {
	t.Helper()
	return made(t, create, observed{now: dayOne, hosts: hosts})
}

func made(t *testing.T, s step, o observed) material {
	t.Helper()
	m, err := s.make(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func without(m material, key string, value string) material {
	return m.with(key, []byte(value), "", nil)
}

// foreign is material of another CA.
func foreign(t *testing.T, of material, keys ...string) material {
	t.Helper()
	other := fresh(t)
	m := of.with("", nil, "", nil)
	for _, key := range keys {
		m[key] = other[key]
	}
	return m
}

// bundles are webhooks that have these.
func bundles(all ...[]byte) []hook {
	var hooks []hook
	for _, b := range all {
		hooks = append(hooks, hook{bundle: b})
	}
	return hooks
}

// What exists decides what is made, and nothing is fatal.
func TestSteps(t *testing.T) {
	good := fresh(t)
	for name, test := range map[string]struct {
		material material
		after    time.Duration
		hosts    []string
		step     step
		serves   bool
		reason   string
	}{
		"nothing":                        {step: create, reason: "no certificate"},
		"empty values":                   {material: material{keyLeaf: nil}, step: create},
		"all right":                      {material: good, step: keep, serves: true},
		"fewer hosts":                    {material: good, hosts: hosts[:1], step: keep, serves: true},
		"leaf malformed":                 {material: without(good, keyLeaf, "x"), step: reissue, reason: "malformed"},
		"leaf is no certificate":         {material: without(good, keyLeaf, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), step: reissue},
		"key of the leaf malformed":      {material: without(good, keyLeafKey, "x"), step: reissue},
		"key is another's":               {material: foreign(t, good, keyLeafKey), step: reissue},
		"leaf of another CA":             {material: foreign(t, good, keyLeaf, keyLeafKey), step: reissue, reason: "not signed"},
		"CA malformed":                   {material: without(good, keyBundle, "x"), step: create, serves: true},
		"CA gone":                        {material: without(good, keyBundle, ""), step: create, serves: true},
		"key of the CA gone":             {material: without(good, keyAuthorityKey, ""), step: announce, serves: true},
		"key of the CA is another's":     {material: foreign(t, good, keyAuthorityKey), step: announce, serves: true},
		"everything malformed":           {material: material{keyBundle: []byte("a"), keyAuthorityKey: []byte("b"), keyLeaf: []byte("c"), keyLeafKey: []byte("d")}, step: create},
		"the leaf for a CA":              {material: without(good, keyBundle, string(good[keyLeaf])), step: create, serves: true},
		"another host":                   {material: good, hosts: []string{"rollout-operator.mimir.svc"}, step: reissue, reason: "does not cover"},
		"another address":                {material: good, hosts: []string{"127.0.0.2"}, step: reissue, reason: "does not cover"},
		"a part of the host":             {material: good, hosts: []string{"spillway-system.svc"}, step: reissue, reason: "does not cover"},
		"before it is due":               {material: good, after: leafLife * 6 / 10, step: keep, serves: true},
		"when it is due":                 {material: good, after: leafLife * 7 / 10, step: reissue, serves: true, reason: "expires on"},
		"expired":                        {material: good, after: leafLife + time.Minute, step: reissue, reason: "valid from"},
		"the clock was set back":         {material: good, after: -24 * time.Hour, step: create, reason: "valid from"},
		"the clocks differ":              {material: good, after: -skew / 2, step: keep, serves: true},
		"CA due, though the leaf is not": {material: renewed(t, good, authorityLife*7/10), after: authorityLife * 7 / 10, step: announce, serves: true},
		"CA expired":                     {material: good, after: authorityLife + time.Minute, step: create},
	} {
		t.Run(name, func(t *testing.T) {
			if test.hosts == nil {
				test.hosts = hosts
			}
			o := observed{now: dayOne.Add(test.after), hosts: test.hosts, material: test.material, generated: true}
			p := decide(o)
			if p.step != test.step || (p.serve != nil) != test.serves || !strings.Contains(p.reason, test.reason) {
				t.Fatalf("makes %q because %q, serves %t", p.step, p.reason, p.serve != nil)
			}
			if p.step == keep {
				return
			}
			o.material = made(t, p.step, o)
			if next := decide(o); next.problem != nil || (next.step != keep) {
				t.Errorf("what was made is not good: %v; next is %q because %q", next.problem, next.step, next.reason)
			}
		})
	}
}

// renewed has a new leaf of the same CA.
func renewed(t *testing.T, m material, after time.Duration) material {
	t.Helper()
	return made(t, reissue, observed{now: dayOne.Add(after), hosts: hosts, material: m})
}

// Files belong to another program: they are served if they are right, and never made.
func TestFilesAreNeverMade(t *testing.T) {
	good := fresh(t)
	for name, test := range map[string]struct {
		material material
		problem  string
		injects  bool
	}{
		"with a CA":      {material: good, injects: true},
		"without a CA":   {material: without(good, keyBundle, "")},
		"nothing":        {material: material{}, problem: "no certificate with its key found"},
		"of another CA":  {material: foreign(t, good, keyBundle), problem: "not signed by"},
		"of other hosts": {material: made(t, create, observed{now: dayOne, hosts: []string{"other"}}), problem: "does not cover"},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(observed{now: dayOne, hosts: hosts, material: test.material, configurations: []configuration{{name: "a", bundled: true, hooks: bundles(nil)}}})
			if p.step != keep || (p.problem == nil) != (test.problem == "") || (p.serve == nil) != (test.problem != "") {
				t.Errorf("makes %q, problem %v", p.step, p.problem)
			}
			if p.problem != nil && !strings.Contains(p.problem.Error(), test.problem) {
				t.Errorf("problem %q, want %q", p.problem, test.problem)
			}
			if (len(p.injections) > 0) != test.injects {
				t.Errorf("%d injections", len(p.injections))
			}
		})
	}
}

// An intermediate certificate comes with the leaf, as cert-manager has it.
func TestChain(t *testing.T) {
	root, rootKey := authority(t, nil, nil)
	between, key := authority(t, root, rootKey)
	rawKey, err := encodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := renewed(t, material{keyBundle: encodeCertificate(between.Raw), keyAuthorityKey: rawKey}, 0)
	chained := material{
		keyBundle: encodeCertificate(root.Raw), keyLeaf: slices.Concat(leaf[keyLeaf], encodeCertificate(between.Raw)), keyLeafKey: leaf[keyLeafKey],
	}
	if p := decide(observed{now: dayOne, hosts: hosts, material: chained}); p.problem != nil {
		t.Error(p.problem)
	}
}

// authority is a CA that may sign others, signed by a parent or self-signed.
func authority(t *testing.T, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{NotBefore: dayOne.Add(-skew), NotAfter: dayOne.Add(leafLife), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	if parent == nil {
		parent, parentKey = c, key
	}
	c.Subject.CommonName = parent.Subject.CommonName + "x"
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c, key
}

// Without a CA nothing is injected: a caBundle that another program has written is kept.
func TestACABundleOfAnotherProgramIsKept(t *testing.T) {
	for name, bundle := range map[string][]byte{"its CA": []byte("x"), "no CA yet": nil} {
		o := observed{now: dayOne, hosts: hosts, material: without(fresh(t), keyBundle, ""), configurations: []configuration{{name: "a", bundled: true, hooks: bundles(bundle)}}}
		if p := decide(o); p.serve == nil || len(p.injections) > 0 {
			t.Errorf("%s: it serves %t (%v), and injects %+v", name, p.serve != nil, p.problem, p.injections)
		}
	}
}

// Injections are due where a caBundle differs, and nowhere else.
func TestInjections(t *testing.T) {
	m := fresh(t)
	ours := m[keyBundle]
	o := observed{now: dayOne, hosts: hosts, material: m, generated: true, configurations: []configuration{
		{name: "right", bundled: true, hooks: bundles(ours, ours)},
		{name: "half", bundled: true, hooks: bundles(ours, nil)},
		{name: "other", bundled: true, hooks: bundles([]byte("x"))},
		{name: "empty"},
	}}
	var names []string
	injections := decide(o).injections
	for n := range injections {
		i := &injections[n]
		names = append(names, i.configuration.name)
		if want := map[string]int{"half": 2, "other": 2}[i.configuration.name]; len(i.operations()) != want { // with the precondition
			t.Errorf("%s: %v", i.configuration.name, i.operations())
		}
	}
	if strings.Join(names, " ") != "half other" {
		t.Errorf("injects into %v", names)
	}
}

func TestSerialNumbersAreRandom(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		k := parse(fresh(t))
		for _, c := range []*x509.Certificate{k.leaf.Leaf, k.bundle[0]} {
			if c.SerialNumber.BitLen() < 64 || seen[c.SerialNumber.String()] {
				t.Errorf("serial number %s", c.SerialNumber)
			}
			seen[c.SerialNumber.String()] = true
		}
	}
}

// Seven years pass, at a manager that looks when it asked to be woken, and at
// an API server that sees the CA as late as it may. At every moment it trusts
// what is served.
func TestSevenYears(t *testing.T) {
	now, secret := dayOne, material(nil)
	var configured []byte // what the manager has injected
	var seen []view       // when, for an API server that lags behind
	steps := map[step]int{}
	for end := dayOne.AddDate(7, 0, 0); now.Before(end); {
		o := observed{now: now, hosts: hosts, material: secret, generated: true, configurations: []configuration{{name: "a", bundled: true, hooks: bundles(configured)}}}
		p := decide(o)
		if now.After(dayOne) {
			if p.serve == nil {
				t.Fatalf("%s: there is nothing to serve: %v", now, p.problem)
			}
			if err := trusts(seenAt(seen, now), p, now); err != nil {
				t.Fatalf("%s: %v", now, err)
			}
		}
		steps[p.step]++
		for _, i := range p.injections {
			configured = i.bundle
			seen = append(seen, view{now.Add(settle), configured})
		}
		switch {
		case p.step != keep:
			secret = made(t, p.step, o)
		case len(p.injections) > 0 && len(seen) == 1:
			seen[0].at, now = now, now.Add(time.Minute) // the first is seen before anybody calls
		case len(p.injections) == 0:
			now = p.wake
		}
		if n := len(parseBundle(secret[keyBundle])); n > 2 {
			t.Fatalf("%s: %d CAs are trusted", now, n)
		}
	}
	if steps[create] != 1 || steps[announce] < 3 || steps[reissue] < 28 {
		t.Errorf("in seven years: %v", steps)
	}
}

// A configuration that cannot be written does not keep the others from being
// served: the newest CA takes over before the certificate expires.
func TestAStubbornConfiguration(t *testing.T) {
	m := renewed(t, fresh(t), authorityLife*7/10)
	o := observed{now: dayOne.Add(authorityLife * 7 / 10), hosts: hosts, material: m, generated: true,
		configurations: []configuration{{name: "stubborn", bundled: true, hooks: bundles([]byte("x"))}}}
	o.material = made(t, decide(o).step, o) // the new CA is announced
	for range 10 {
		p := decide(o)
		if p.serve == nil {
			t.Fatalf("%s: nothing is served: %v", o.now, p.problem)
		}
		if p.step == reissue {
			o.material = made(t, p.step, o)
			if !parse(o.material).signedByNewest() {
				t.Error("the former CA signs still")
			}
			return
		}
		o.now = p.wake
	}
	t.Error("the newest CA never takes over")
}

// Replicas that are called by different names agree on a certificate, and do not
// take turns.
func TestReplicasOfDifferentHosts(t *testing.T) {
	o := observed{now: dayOne, material: fresh(t), generated: true}
	writes := 0
	for turn := range 10 {
		o.hosts = [][]string{{"old.svc"}, {"new.svc", "127.0.0.9"}}[turn%2]
		if p := decide(o); p.step != keep {
			o.material = made(t, p.step, o)
			writes++
		}
	}
	if writes != 2 {
		t.Errorf("%d writes", writes)
	}
	o.now, o.hosts = dayOne.Add(leafLife*7/10), []string{"new.svc"}
	o.material = made(t, decide(o).step, o)
	if got := hostsOf(parse(o.material).leaf.Leaf); !slices.Equal(got, o.hosts) {
		t.Errorf("renewed, it still covers %v", got)
	}
}

// A certificate names each host once, in an order that does not depend on which replica
// makes it.
func TestACertificateNamesEachHostOnce(t *testing.T) {
	old := made(t, create, observed{now: dayOne, hosts: []string{"b.svc", "a.svc", "127.0.0.1"}})
	for _, hosts := range [][]string{{"b.svc", "new.svc", "127.0.0.1"}, {"new.svc", "127.0.0.1", "b.svc"}} {
		o := observed{now: dayOne, hosts: hosts, material: old, generated: true}
		p := decide(o)
		if p.step != reissue {
			t.Fatalf("it makes %q", p.step)
		}
		if got := hostsOf(parse(made(t, p.step, o)).leaf.Leaf); strings.Join(got, " ") != "a.svc b.svc new.svc 127.0.0.1" {
			t.Errorf("it covers %v", got)
		}
	}
}

// view is a caBundle and when an API server sees it.
type view struct {
	at     time.Time
	bundle []byte
}

func seenAt(seen []view, now time.Time) []byte {
	var bundle []byte
	for _, s := range seen {
		if !s.at.After(now) {
			bundle = s.bundle
		}
	}
	return bundle
}

func trusts(bundle []byte, p plan, now time.Time) error {
	_, err := p.serve.Leaf.Verify(x509.VerifyOptions{Roots: pool(parseBundle(bundle)), DNSName: hosts[0], CurrentTime: now})
	return err
}
