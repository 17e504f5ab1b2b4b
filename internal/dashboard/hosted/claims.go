package hosted

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Claims says which claims of a token name the user and her groups, as the flags of
// kube-apiserver do.
type Claims struct {
	// User is the claim with the name, UserPrefix what is put before it.
	User, UserPrefix string
	// Groups is the claim with the groups, of none if it is empty; GroupsPrefix is what is put
	// before each.
	Groups, GroupsPrefix string
}

const (
	// NoPrefix is how a prefix that is empty is written.
	NoPrefix = "-"
	// email is the claim of which another one says whether the issuer has verified it.
	email = "email"
)

// Of returns the claims with the prefix that kube-apiserver takes where none is named.
func (c Claims) Of(issuer string) Claims {
	switch {
	case c.UserPrefix == NoPrefix:
		c.UserPrefix = ""
	case c.UserPrefix == "" && c.User != email:
		c.UserPrefix = issuer + "#"
	}
	return c
}

// names are the user and the groups that a token is about.
func (c Claims) names(token map[string]json.RawMessage) (user string, groups []string, err error) {
	if err := json.Unmarshal(token[c.User], &user); err != nil || user == "" {
		return "", nil, fmt.Errorf("the token has no claim %q with a name", c.User)
	}
	if verified, ok := token["email_verified"]; ok && c.User == email && string(verified) != "true" {
		return "", nil, errors.New("the issuer has not verified the email address")
	}
	if err := check(user); err != nil { // before a prefix hides what it is
		return "", nil, err
	}
	raw, ok := token[c.Groups]
	if !ok {
		return c.UserPrefix + user, nil, nil
	}
	if json.Unmarshal(raw, &groups) != nil {
		one := ""
		if json.Unmarshal(raw, &one) != nil {
			return "", nil, fmt.Errorf("the claim %q of the token is no list of names", c.Groups)
		}
		groups = []string{one}
	}
	for i, group := range groups {
		if err := check(group); err != nil {
			return "", nil, err
		}
		groups[i] = c.GroupsPrefix + group
	}
	return c.UserPrefix + user, groups, nil
}
