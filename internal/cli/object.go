package cli

import (
	"fmt"
	"strings"

	"github.com/spillway-dev/spillway/internal/standing"
)

// objectNamed is the object that a person has named as KIND/NAME, of any kind that a
// ring rolls.
func objectNamed(namespace, arg string) (standing.Ref, error) {
	kind, name, _ := strings.Cut(arg, "/")
	ref := standing.Ref{Namespace: namespace, Name: name}
	if _, ok := groupNamed(arg); ok {
		ref.Kind = "RolloutGroup"
		return ref, nil
	}
	if m, ok := moduleNamed(arg); ok {
		ref.Kind = m.kind
		return ref, nil
	}
	if isInstanceKind(kind) && name != "" {
		ref.Kind = "Instance"
		return ref, nil
	}
	w, err := workloadName(namespace, arg)
	ref.Kind = w.Kind
	return ref, err
}

// atMost takes n arguments or fewer.
func atMost(n int, mend string) func(command string, args []string) error {
	return func(command string, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%s takes %d argument, not %d: %s", command, n, len(args), mend)
		}
		return nil
	}
}
