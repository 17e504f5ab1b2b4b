package hosted

import (
	"encoding/json"
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
