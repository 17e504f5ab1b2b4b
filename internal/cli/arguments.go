package cli

import "fmt"

// atMost takes n arguments or fewer.
func atMost(n int, mend string) func(command string, args []string) error {
	return func(command string, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%s takes %d argument, not %d: %s", command, n, len(args), mend)
		}
		return nil
	}
}
