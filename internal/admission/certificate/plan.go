package certificate

import (
	"crypto/tls"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// generated is true if the material is ours to renew, in secret; which is nil
	// while there is none.
	generated bool
	secret    *corev1.Secret
	// configurations are those whose caBundle is ours to write.
	configurations []configuration
}

// configuration is a webhook configuration, as far as it matters here.
type configuration struct {
	kind, name, resourceVersion string
	// bundles are the caBundles of its webhooks, in their order.
	bundles  [][]byte
	webhooks []unansweredWebhook
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
	// injections are the caBundles to write.
	injections []injection
	// wake is when time alone will change the plan; zero is never.
	wake time.Time
}

// injection is a write of caBundles into one webhook configuration.
type injection struct {
	configuration configuration
	bundle        []byte
}

// decide says what follows from what was observed. It is pure.
func decide(o observed) plan {
	k := parse(o.material)
	p := plan{problem: k.check(o.now, o.hosts)}
	if o.generated {
		p.step, p.reason = o.nextStep(k, p.problem)
	}
	if p.problem != nil {
		return p
	}
	p.serve = k.leaf
	p.injections = o.injections()
	p.wake = o.wake(k)
	return p
}

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
		return slices.ContainsFunc(c.bundles, func(b []byte) bool { return !trusted(b, o.material[keyBundle]) })
	})
}

// injections are due wherever a caBundle is not current. Without a CA there is
// nothing to inject: the owner of the files injects it.
func (o observed) injections() []injection {
	bundle := o.material[keyBundle]
	if len(bundle) == 0 {
		return nil
	}
	var due []injection
	for _, c := range o.configurations {
		if slices.ContainsFunc(c.bundles, func(b []byte) bool { return !same(b, bundle) }) {
			due = append(due, injection{configuration: c, bundle: bundle})
		}
	}
	return due
}

// wake is the next moment at which something is due.
func (o observed) wake(k keyring) time.Time {
	moments := []time.Time{k.leaf.Leaf.NotAfter}
	if o.generated && len(k.bundle) > 0 {
		moments = append(moments, due(k.leaf.Leaf), last(k.leaf.Leaf), due(k.bundle[0]), k.settled())
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
