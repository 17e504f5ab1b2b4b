package account

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/plans/pipe"
)

// kept is how many accounts have clients in memory.
const kept = 256

// Rights are how the objects of an Instance are read and written.
type Rights struct {
	Account Account
	Client  client.Client
	// Live reads from the API server.
	Live  client.Reader
	Files pipe.Files
	// Config is that of Client; nil of the manager's own.
	Config *rest.Config
}

// Clients make clients that act as accounts. They are safe for concurrent use.
type Clients struct {
	Config *rest.Config
	Scheme *runtime.Scheme
	Mapper apimeta.RESTMapper
	// Own are the rights of the manager.
	Own Rights
	// Files read the files of Pipes, for all accounts; nil if each reads as itself.
	Files pipe.Files
	made  *lru.Cache
}

// NewClients returns clients for as many accounts as are in use.
func NewClients(c Clients) *Clients {
	c.made = lru.New(kept)
	return &c
}

// Of returns the rights of an account.
func (c *Clients) Of(a Account) (Rights, error) {
	if a.IsManager() {
		return c.Own, nil
	}
	if made, ok := c.made.Get(a); ok {
		if r, ok := made.(Rights); ok {
			return r, nil
		}
	}
	r, err := c.impersonating(a)
	if err != nil {
		return Rights{}, fmt.Errorf("make a client that acts as %s: %w", a, err)
	}
	c.made.Add(a, r)
	return r, nil
}

func (c *Clients) impersonating(a Account) (Rights, error) {
	r := Rights{Account: a, Config: a.impersonate(c.Config), Files: c.Files}
	transport, err := rest.HTTPClientFor(r.Config)
	if err != nil {
		return r, err //nolint:wrapcheck // the caller says what it is for
	}
	if r.Files == nil {
		if r.Files, err = pipe.NewExecFiles(r.Config, transport); err != nil {
			return r, err
		}
	}
	r.Client, err = client.New(r.Config, client.Options{HTTPClient: transport, Scheme: c.Scheme, Mapper: c.Mapper})
	r.Live = r.Client
	return r, err //nolint:wrapcheck // as above
}
