package hosted

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spillway-dev/spillway/internal/message"
)

const (
	// nameBytes is how long the name of a user or group may be, groupsOfOne how many groups
	// one may have.
	nameBytes, groupsOfOne = 256, 100
	// reserved begins the names that Kubernetes gives out itself.
	reserved = "system:"
)

// Person is who asks, as the API server knows her.
type Person struct {
	User   string   `json:"u"`
	Groups []string `json:"g,omitempty"`
}

// Groups says which groups the server may impersonate: those that are named, all with "*".
type Groups []string

// AllGroups is the name that stands for all groups.
const AllGroups = "*"

// person is one with the groups among hers that may be impersonated.
func (g Groups) person(user string, groups []string) (Person, error) {
	for _, name := range append([]string{user}, groups...) {
		if err := check(name); err != nil {
			return Person{}, err
		}
	}
	var may []string
	for _, name := range groups {
		if slices.Contains(g, AllGroups) || slices.Contains(g, name) {
			may = append(may, name)
		}
	}
	slices.Sort(may)
	may = slices.Compact(may)
	if len(may) > groupsOfOne {
		return Person{}, fmt.Errorf("%s has %d groups, more than %d; name the groups that matter with --groups", user, len(may), groupsOfOne)
	}
	return Person{User: user, Groups: may}, nil
}

// check refuses names that the API server would take for others, and those that it gives out.
func check(name string) error {
	switch {
	case name == "" || name != strings.TrimSpace(name) || !utf8.ValidString(name) || len(name) > nameBytes || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q cannot be the name of a user or group", message.Cut(name, nameBytes))
	case strings.HasPrefix(name, reserved):
		return fmt.Errorf("%q is a name that only Kubernetes gives out", name)
	default:
		return nil
	}
}

// key tells persons apart, and what they look at.
func (p Person) key(namespace string) string {
	raw, _ := json.Marshal([]any{p.User, p.Groups, namespace}) //nolint:errchkjson // of strings
	return string(raw)
}

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
