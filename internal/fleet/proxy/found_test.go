package proxy

import (
	"testing"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// kept is a sync that was taken over as it was found.
func kept(name, tag string) string {
	return "name: " + name + "\nrevision: " + name + "-" + tag + "\nfound: true"
}

// A hub that was rebuilt looks first, takes over what it finds, and only then sends another revision.
func TestWhatIsFoundIsTakenOverAsItIs(t *testing.T) {
	m := rebuilt(t, []string{git("shop", "v1", ""), git("web", "v1", "")})
	m.expect(m.makes(), "")
	m.expect(len(m.o.Proxy.Status.Found.Syncs), 2)
	m.expect(m.o.Proxy.Status.Found.Syncs[0].Revision, "shop-v1")
	m.wants(kept("shop", "v1"))
	m.moment(1)
	m.expect(m.makes(), "")
	m.expect(m.says(), "shop-v1 succeeded: applied")
	m.expect(m.o.Proxy.Status.Adopted, "") // it would take web away
	m.wants(kept("shop", "v1"), kept("web", "v1"))
	m.moment(1)
	m.expect(m.makes(), "")
	m.expect(m.says(), "shop-v1 succeeded: applied, web-v1 succeeded: applied")
	m.wants(git("shop", "v2", ""), kept("web", "v1"))
	m.moment(1)
	m.expect(m.makes(), "Send")
	m.expect(m.o.Live.Spec.Syncs[1].Source.Git.Version.Tag, "v1")
	if m.o.Proxy.Status.Found != nil {
		t.Errorf("%+v", m.o.Proxy.Status.Found)
	}
}

// A cluster that has nothing was looked at, and of one that does not answer that is known.
func TestWhatIsNotThereWasLookedFor(t *testing.T) {
	m := newModel(t)
	m.expect(m.makes(), "")
	m.expect(m.o.Proxy.Status.Found, &v1alpha1.Found{})
	m = newModel(t)
	m.o.Problem = cluster.ErrUnproven
	m.step()
	m.expect(m.o.Proxy.Status.Found, (*v1alpha1.Found)(nil))
	m.o.Problem = cluster.ErrMissing
	m.step()
	m.expect(m.o.Proxy.Status.Found, &v1alpha1.Found{Silent: true})
	m.o.Problem = nil
	m.step()
	m.expect(m.o.Proxy.Status.Found, &v1alpha1.Found{})
}

// What was given up lies on the cluster, and not in what is applied there; and what a cluster says of itself
// is no name that it is not.
func TestACopyOfWhatWasGivenUpLiesOnTheCluster(t *testing.T) {
	m := rebuilt(t, []string{git("shop", "v1", "givenUp: {revision: shop-v2, at: '2026-05-04T12:00:00.000000Z', cluster: c1, message: no room}")})
	m.expect(m.o.Live.Spec.Syncs[0].GivenUp, (*v1alpha1.GivenUp)(nil))
	m.expect(m.makes(), "")
	given := m.o.Proxy.Status.Found.Syncs[0].GivenUp
	m.expect(given.Revision+" "+given.Cluster+" "+given.Message, "shop-v2 c1 no room")
	for _, lie := range []string{`{"shop": {"revision": "; rm"}}`, `{"shop": null}`, `nonsense`, `{"shop": {"revision": "x", "cluster": "$(x)"}}`, `{"web": {"revision": "web-v1"}}`} {
		m.o.Live.Annotations[vocabulary.GivenUp.Native] = lie
		m.step()
		m.expect(m.o.Proxy.Status.Found.Syncs[0].GivenUp, (*v1alpha1.GivenUp)(nil))
	}
	m.o.Live.Spec.Syncs[0].Revision = "Not A Name"
	m.step()
	m.expect(m.o.Proxy.Status.Found.Syncs[0].Revision, unnamed)
}
