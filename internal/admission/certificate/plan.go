package certificate

import (
	"cmp"
	"crypto/tls"
	"errors"
	"maps"
	"path"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/admission/serve"
)

// settle is how long every API server is given to see a CA before a certificate
// signed by it is served.
const settle = 10 * time.Minute

// observed is all that a pass is decided from.
type observed struct {
	now   time.Time
	hosts []string
	// material is what there is of the certificate.
	material material
	// generated is true if the material is ours to renew, in secret.
	generated bool
	// secret is the one that we write, nil while there is none.
	secret *corev1.Secret
	// keys are those in paths, the newest first.
	keys []pathKey
	// elected is when this replica has begun to lead, zero if it does not.
	elected time.Time
	// served are the paths at which webhooks are answered, and registered those of our own
	// configurations, by the names of the webhooks.
	served     map[string]bool
	registered map[string]string
	// configurations are those that are ours to write.
	configurations []configuration
}

// configuration is a webhook configuration, as far as it matters here.
type configuration struct {
	kind, name, resourceVersion string
	// own is true of those that are installed with the manager.
	own bool
	// bundled is true if its caBundles are ours to write; the paths of all are.
	bundled bool
	// hooks are its webhooks, in their order.
	hooks []hook
	// heldUntil is when the paths are written again that another client puts back.
	heldUntil time.Time
	// content names what its webhooks are, as long as no client changes them: the UID and the generation.
	content string
	// annotated is true if it has annotations, and confirmed is that of [vocabulary.Injected].
	annotated bool
	confirmed string
	// confirmAt is when it is due to be written once more, zero if it is not.
	confirmAt time.Time
}

func (c *configuration) id() string { return c.kind + "/" + c.name }

// hook is how the API server calls one webhook.
type hook struct {
	name   string
	policy admissionregistrationv1.FailurePolicyType
	bundle []byte
	// host and path are where; url is all of it, empty for a Service.
	host, path, url string
}

// step is what is to be done about the certificate.
type step string

const (
	// keep leaves it as it is.
	keep step = ""
	// create makes a CA and a certificate, when there is nothing to build on.
	create step = "a new CA and a new certificate"
	// announce makes a CA and lets it be trusted beside the former one, whose
	// certificate is still served.
	announce step = "a new CA, beside the former one"
	// reissue makes a certificate signed by the newest CA.
	reissue step = "a new certificate"
)

// plan is what a pass has come to.
type plan struct {
	step step
	// reason is why, for the log.
	reason string
	// serve is the certificate to present. It is nil if there is none that may
	// be, and problem says why.
	serve   *tls.Certificate
	problem error
	// rotates is true if a new key is to be written, and accept are the keys to accept.
	rotates bool
	accept  []string
	// injections are the caBundles and paths to write.
	injections []injection
	// wake is when time alone will change the plan; zero is never.
	wake time.Time
}

// injection is a write of caBundles and paths into one webhook configuration.
type injection struct {
	configuration configuration
	// bundle is what all its webhooks are to have, nil if that is left alone.
	bundle []byte
	// paths are those that its webhooks are to have, in their order; empty ones are left alone.
	paths []string
	// key is the one in the paths.
	key string
	// confirms is true of a write that only confirms what stands there.
	confirms bool
}

// decide says what follows from what was observed. It is pure.
func decide(o observed) plan {
	k := parse(o.material)
	p := plan{problem: k.check(o.now, o.hosts), accept: o.accepted()}
	if o.generated {
		p.step, p.reason = o.nextStep(k, p.problem)
	}
	if why := o.needsKey(); why != "" {
		p.rotates = true
		p.reason = cmp.Or(p.reason, why)
	}
	if p.problem != nil {
		return p
	}
	p.serve = k.leaf
	p.injections = o.injections()
	p.wake = o.wake(k)
	return p
}

// writes is true if the Secret is to be written.
func (p plan) writes() bool { return p.step != keep || p.rotates }

// nextStep keeps what is right, and replaces the rest in an order in which
// no API server receives a certificate whose CA it does not trust yet.
func (o observed) nextStep(k keyring, problem error) (step, string) {
	switch {
	case problem != nil && k.canSign(o.now):
		return reissue, problem.Error()
	case problem != nil:
		return create, problem.Error()
	case !k.canSign(o.now) && len(k.bundle) == 0:
		return create, "there is no CA"
	case !k.canSign(o.now):
		return announce, "the CA is invalid, or its key was not found"
	case !o.now.Before(due(k.bundle[0])):
		return announce, "the CA expires on " + day(k.bundle[0].NotAfter)
	case !k.signedByNewest():
		return o.handOver(k)
	case !o.now.Before(due(k.leaf.Leaf)):
		return reissue, "the certificate expires on " + day(k.leaf.Leaf.NotAfter)
	}
	return keep, ""
}

// handOver waits with the newest CA until it is trusted everywhere; but one
// configuration that cannot be written does not take down the others.
func (o observed) handOver(k keyring) (step, string) {
	switch {
	case o.announced(k):
		return reissue, "the newest CA is trusted everywhere"
	case !o.now.Before(last(k.leaf.Leaf)):
		return reissue, "the certificate expires on " + day(k.leaf.Leaf.NotAfter) + ", though not every configuration trusts the newest CA"
	default:
		return keep, ""
	}
}

// announced is true if every configuration has the newest CA, and API servers
// have had the time to see it.
func (o observed) announced(k keyring) bool {
	return !o.now.Before(k.settled()) && !slices.ContainsFunc(o.configurations, func(c configuration) bool {
		return c.bundled && slices.ContainsFunc(c.hooks, func(h hook) bool { return !trusted(h.bundle, o.material[keyBundle]) })
	})
}

// injections are due wherever a caBundle or a path is not current. Without a CA there is
// none to inject: the owner of the files injects it.
func (o observed) injections() []injection {
	bundle := o.material[keyBundle]
	var due []injection
	for i := range o.configurations {
		c := &o.configurations[i]
		write := injection{configuration: *c}
		differs := func(h hook) bool { return !same(h.bundle, bundle) }
		if c.bundled && len(bundle) > 0 && slices.ContainsFunc(c.hooks, differs) {
			write.bundle = bundle
		}
		if o.lacksPath(c) && !o.now.Before(c.heldUntil) {
			write.paths, write.key = o.paths(c), o.keys[0].key
		}
		write.confirms = write.bundle == nil && !o.lacksPath(c) && c.confirmsBy(o.now)
		if write.bundle != nil || write.paths != nil || write.confirms {
			due = append(due, write)
		}
	}
	return due
}

// lacksPath is true if a webhook of a configuration is to have another path.
func (o observed) lacksPath(c *configuration) bool {
	paths := o.paths(c)
	for i, h := range c.hooks {
		if paths[i] != "" && paths[i] != h.path {
			return true
		}
	}
	return false
}

// paths are those that the webhooks of a configuration are to have; empty for one that is
// not ours. A key is sent to no other server: it is put only where the API server calls a host
// that is ours, at a path that is.
func (o observed) paths(c *configuration) []string {
	paths := make([]string, len(c.hooks))
	for i, h := range c.hooks {
		base := o.base(h.path)
		if base == "" && c.own {
			base = o.registered[h.name]
		}
		if base != "" && len(o.keys) > 0 && slices.Contains(o.hosts, h.host) {
			paths[i] = base + "/" + o.keys[0].key
		}
	}
	return paths
}

// base is a path without the key, empty if nothing is answered there.
func (o observed) base(at string) string {
	if o.served[at] {
		return at
	}
	if without := path.Dir(at); o.served[without] && serve.IsKey(path.Base(at)) {
		return without
	}
	return ""
}

// wake is the next moment at which something is due.
func (o observed) wake(k keyring) time.Time {
	moments := []time.Time{k.leaf.Leaf.NotAfter}
	if o.generated && len(k.bundle) > 0 {
		moments = append(moments, due(k.leaf.Leaf), last(k.leaf.Leaf), due(k.bundle[0]), k.settled())
	}
	if len(o.keys) > 0 {
		moments = append(moments, o.keys[0].made.Add(pathLife), o.keys[0].made.Add(pathGrace))
	}
	for i := range o.configurations {
		moments = append(moments, o.configurations[i].heldUntil, o.configurations[i].confirmAt)
	}
	var next time.Time
	for _, m := range moments {
		if m.After(o.now) && (next.IsZero() || m.Before(next)) {
			next = m
		}
	}
	return next
}

// settled is when API servers have observed the newest CA, if it was injected.
func (k keyring) settled() time.Time { return k.bundle[0].NotBefore.Add(skew + settle) }

// make makes what is to be written into the Secret.
func (p plan) make(o observed) (material, error) {
	m := material{}
	if p.step != keep {
		made, err := p.step.make(o)
		if err != nil {
			return nil, err
		}
		maps.Copy(m, made)
	}
	if p.rotates || p.step == create || p.step == reissue { // the key changes with the certificate
		m[keyPaths] = encodeKeys(o.newKeys())
	}
	return m, nil
}

// make makes what the step asks for.
func (s step) make(o observed) (material, error) {
	switch s {
	case create:
		m, err := material{}.newAuthority(o.now)
		if err != nil {
			return nil, err
		}
		return m.newLeaf(o.now, o.hosts)
	case announce:
		return o.material.newAuthority(o.now)
	case reissue:
		return o.material.newLeaf(o.now, o.covered())
	default:
		return nil, errors.New("nothing is to be made")
	}
}

// covered are our hosts, and those of a certificate that is good otherwise: they
// may be those of another replica, of an older or newer version, with which we
// would take turns for ever.
func (o observed) covered() []string {
	hosts := slices.Clone(o.hosts)
	if k := parse(o.material); k.check(o.now, nil) == nil && o.now.Before(due(k.leaf.Leaf)) {
		hosts = append(hosts, hostsOf(k.leaf.Leaf)...)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
