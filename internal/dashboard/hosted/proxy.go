package hosted

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxy is an authenticating proxy, whose headers name who asks.
type Proxy struct {
	// Addresses are those that the proxy connects from.
	Addresses []netip.Prefix
	// User is the header with the name of the user, Groups the one with her groups, separated
	// by commas.
	User, Groups string
	// May says which groups are used.
	May Groups
	// Certified requires a certificate of the proxy, which the server has verified.
	Certified bool
}

var errNotProxy = errors.New("requests are answered only if they come from the proxy that authenticates people")

// validate says what is wrong.
func (p *Proxy) validate() error {
	if len(p.Addresses) == 0 {
		return errors.New("name the addresses of the proxy")
	}
	for _, at := range p.Addresses {
		if at.Bits() == 0 {
			return fmt.Errorf("%s is every address; name those of the proxy", at)
		}
	}
	if p.User == "" || http.CanonicalHeaderKey(p.User) == http.CanonicalHeaderKey(p.Groups) {
		return errors.New("name one header for the user, and another one for the groups")
	}
	return nil
}

// admits is false of a request that is not from the proxy.
func (p *Proxy) admits(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || p.Certified && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
		return false
	}
	return p.has(from.Addr().Unmap())
}

// has is true of an address of the proxy.
func (p *Proxy) has(from netip.Addr) bool {
	return slices.ContainsFunc(p.Addresses, func(at netip.Prefix) bool { return at.Contains(from) })
}

// who is the person that the proxy names.
func (p *Proxy) who(r *http.Request) (Person, error) {
	if !p.admits(r) {
		return Person{}, errNotProxy
	}
	user, err := one(r, p.User)
	if err != nil {
		return Person{}, err
	}
	if user == "" {
		return Person{}, fmt.Errorf("the proxy has not said who you are: the header %s is empty", p.User)
	}
	if p.Groups == "" {
		return p.May.person(user, nil)
	}
	list, err := one(r, p.Groups)
	if err != nil {
		return Person{}, err
	}
	var groups []string
	for group := range strings.SplitSeq(list, ",") {
		if group = strings.TrimSpace(group); group != "" {
			groups = append(groups, group)
		}
	}
	return p.May.person(user, groups)
}

// one is the only value of a header: of two, one could be of another client.
func one(r *http.Request, name string) (string, error) {
	switch all := r.Header.Values(name); len(all) {
	case 0:
		return "", nil
	case 1:
		return all[0], nil
	default:
		return "", fmt.Errorf("the header %s was sent %d times", name, len(all))
	}
}
