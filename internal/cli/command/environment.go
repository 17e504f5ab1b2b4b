package command

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Environment is all that a command knows of the process that it runs in.
type Environment struct {
	// Args are the program's name and its arguments.
	Args     []string
	Out, Err io.Writer
	// Lookup finds an environment variable.
	Lookup func(name string) (value string, ok bool)
	// Now is the clock.
	Now func() time.Time
	// KUDO is true of a command that was called by the name of KUDO's: names of packages are
	// understood as it does, and results are written as it writes them.
	KUDO bool
}

// FromEnvironment sets the flags that were not given from the environment.
func FromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(Variable(f.Name))
		if !ok || f.Changed || failed != nil {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			failed = fmt.Errorf("environment variable %s: %s", Variable(f.Name), valueError(f, value, err))
		}
	})
	return failed
}

// Variable is the environment variable that a flag can be set by.
func Variable(flag string) string {
	return "SPILLWAY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// SpendMemory lets a command that is over in a second, and needs some tens of megabytes, spend
// less of it on collecting garbage. One that goes on ends that with what it returns.
func SpendMemory() (save func()) {
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

// ExitError is an error with an exit code of its own.
type ExitError struct {
	Err  error
	Code int
	// Said is true if the output has said it already, so that it is not printed again.
	Said bool
}

// Error implements error.
func (e ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e ExitError) Unwrap() error { return e.Err }
