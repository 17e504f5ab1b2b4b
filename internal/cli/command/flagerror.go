package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/nearest"
)

// otherFlags are, by command, the flags that other commands have, and what to use for them.
var otherFlags = map[string]map[string]string{
	"status": {"watch": noWatch, "w": noWatch},
	"explain": {
		"all-namespaces": noAll, "A": noAll,
		"filename": noFile, "f": noFile,
	},
}

// What to use for a flag of another command.
const (
	noWatch = "status does not continue; use spillway watch"
	noAll   = "explain shows one object; use spillway status -A"
	noFile  = "explain reads no files; use spillway lint -f FILE or spillway simulate -f FILE"
)

// FlagError says what is wrong with a flag, and what it takes instead.
func FlagError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("(see %s --help)", cmd.CommandPath())
	var (
		invalid *pflag.InvalidValueError
		missing *pflag.NotExistError
		empty   *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s: %s %s", invalid.GetFlag().Name, valueError(invalid.GetFlag(), invalid.GetValue(), err), help)
	case errors.As(err, &missing) && otherFlags[cmd.Name()][missing.GetSpecifiedName()] != "":
		return fmt.Errorf("unknown flag: %s %s", otherFlags[cmd.Name()][missing.GetSpecifiedName()], help)
	case errors.As(err, &empty) && empty.GetSpecifiedShortnames() != "":
		return fmt.Errorf("-%s: it needs a value%s %s", empty.GetSpecifiedName(), choices(empty.GetFlag()), help)
	case errors.As(err, &empty):
		return fmt.Errorf("--%s: it needs a value%s %s", empty.GetSpecifiedName(), choices(empty.GetFlag()), help)
	case errors.As(err, &missing) && missing.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag: -%s %s", missing.GetSpecifiedName(), help)
	case errors.As(err, &missing):
		if near := nearest.Meant(missing.GetSpecifiedName(), names(cmd.Flags())); near != "" {
			return fmt.Errorf("%w; did you mean --%s? %s", err, near, help)
		}
	}
	return fmt.Errorf("%w %s", err, help)
}

// valueError says what a value should have been, as its flag does or by the type of that.
func valueError(f *pflag.Flag, value string, err error) string {
	form, isForm := errors.AsType[formError](err)
	switch t := f.Value.Type(); {
	case isForm:
		return form.Error()
	case t == "duration":
		return notDuration(value)
	case t == versionType:
		return notVersion(value)
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return fmt.Sprintf(`%q is not a whole number; use one such as %s`, value, numberLike(f))
	case strings.HasPrefix(t, "float"):
		return fmt.Sprintf(`%q is not a number; use one such as 0.5`, value)
	case t == "bool":
		return fmt.Sprintf(`%q is neither true nor false`, value)
	default:
		return fmt.Sprintf(`%q is not a value of type %s`, value, t)
	}
}

// numberLike is an example of a whole number for a flag. A flag whose default is a number that
// does something has that, so that no port is 3.
func numberLike(f *pflag.Flag) string {
	if usual, err := strconv.Atoi(f.DefValue); err == nil && usual > 0 {
		return f.DefValue
	}
	return "3"
}

// choices ends what is said of a flag without its value: the words that it has, if it has few.
func choices(f *pflag.Flag) string {
	if few, ok := f.Value.(interface{ choices() string }); ok {
		return "; use " + few.choices()
	}
	return ""
}

func notDuration(value string) string {
	if days, err := strconv.Atoi(strings.TrimSuffix(value, "d")); err == nil && strings.HasSuffix(value, "d") {
		return fmt.Sprintf(`%q is not a duration: there is no unit for days; write %dh`, value, days*24)
	}
	return fmt.Sprintf(`%q is not a duration; use a number with a unit, such as 10s, 5m or 1h`, value)
}

// names are those of the flags that help shows.
func names(flags *pflag.FlagSet) []string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// Values are those of a flag that was given, one unless it may be given several times.
func Values(f *pflag.Flag) []string {
	if several, ok := f.Value.(pflag.SliceValue); ok {
		return several.GetSlice()
	}
	return []string{f.Value.String()}
}
