package lifecycle

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/packages"
)

// settings are the parameters that a user gives.
type settings struct {
	pairs, files, unset, sources []string
}

func (s *settings) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&s.pairs, "parameter", "p", nil, "a parameter as NAME=VALUE; may be given several times, and comes before files")
	cmd.Flags().StringArrayVar(&s.sources, "parameter-from", nil, "a parameter whose value stays in a Secret of the namespace, as NAME=SECRET/KEY; may be given several times")
	cmd.Flags().StringArrayVarP(&s.files, "parameter-file", "P", nil, "a file of parameters in YAML, also with lists and maps; may be given several times, the last one wins")
}

func (s *settings) addUnset(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.unset, "unset", nil, "the name of a parameter to set back to its default; may be given several times")
}

// given are the parameters that are set.
func (s *settings) given() (map[string]string, error) {
	values := map[string]string{}
	for _, file := range s.files {
		raw, err := os.ReadFile(file) //nolint:gosec // the user names what is read
		if err != nil {
			return nil, fmt.Errorf("--parameter-file: %w; name a file in YAML", err)
		}
		some, err := packages.Values(raw)
		if err != nil {
			return nil, fmt.Errorf("--parameter-file: %s: %w", file, err)
		}
		maps.Copy(values, some)
	}
	for _, pair := range s.pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--parameter: %q must be NAME=VALUE", pair)
		}
		values[name] = value
	}
	return values, nil
}

// set changes the parameters of a spec as given.
func (s *settings) set(spec *v1beta1.InstanceSpec) error {
	parameters, err := s.applied(spec.Parameters)
	if err != nil {
		return err
	}
	from := slices.DeleteFunc(slices.Clone(spec.ParametersFrom), func(p v1beta1.ParameterSource) bool { return slices.Contains(s.unset, p.Name) })
	for _, given := range s.sources {
		name, ref, isPair := strings.Cut(given, "=")
		secret, key, hasKey := strings.Cut(ref, "/")
		if !isPair || !hasKey || name == "" || secret == "" || key == "" {
			return fmt.Errorf("--parameter-from: %q must be NAME=SECRET/KEY", given)
		}
		from = slices.DeleteFunc(from, func(p v1beta1.ParameterSource) bool { return p.Name == name })
		from = append(from, v1beta1.ParameterSource{Name: name, SecretKeyRef: v1beta1.SecretKeyReference{Name: secret, Key: key}})
		delete(parameters, name)
	}
	if spec.ParametersFrom = from; len(parameters) > 0 || spec.Parameters != nil {
		spec.Parameters = parameters
	}
	return nil
}

// applied are parameters after a change: those that were set before, without those that
// are unset, and with those that are given.
func (s *settings) applied(before map[string]string) (map[string]string, error) {
	given, err := s.given()
	if err != nil {
		return nil, err
	}
	after := maps.Clone(before)
	if after == nil {
		after = map[string]string{}
	}
	for _, name := range s.unset {
		if _, both := given[name]; both {
			return nil, fmt.Errorf("--unset: parameter %s is set as well; leave out one of them", name)
		}
		delete(after, name)
	}
	maps.Copy(after, given)
	return after, nil
}
