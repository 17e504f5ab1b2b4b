package choice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// The value of a parameter that comes from a Secret stands nowhere: in specs that are compared or
// kept a token stands for it, which names the Secret and has a digest of the value. The key of the
// digest is the UID of the Secret, which users who may not read the Secret do not know: they
// cannot try out values.

// tokenPrefix begins a token. No user can set such a value.
const tokenPrefix = "spillway.dev/secret:" //nolint:gosec // it names a Secret

// Token stands for the value that a parameter has in a Secret.
func Token(from *v1beta1.ParameterSource, secret types.UID, value string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(value)) // it never fails
	return reference(from) + hex.EncodeToString(mac.Sum(nil))[:32]
}

// reference is a token without the digest, for a value that is not known.
func reference(from *v1beta1.ParameterSource) string {
	return tokenPrefix + from.SecretKeyRef.Name + "/" + from.SecretKeyRef.Key + ":"
}

// IsToken reports whether a value stands for one that comes from a Secret.
func IsToken(value string) bool { return strings.HasPrefix(value, tokenPrefix) }

// HasToken reports whether a text that was rendered has a token in it.
func HasToken(text string) bool { return strings.Contains(text, tokenPrefix) }

// isSame reports whether two values are the same, as far as is known.
func isSame(a, b string) bool {
	return a == b || IsToken(a) && IsToken(b) && (strings.HasSuffix(a, ":") && strings.HasPrefix(b, a) || strings.HasSuffix(b, ":") && strings.HasPrefix(a, b))
}

// WithTokens are the parameters of a spec, with tokens for those that come from Secrets. A spec of
// a status has them already; of one that a user has written the values are not known.
func WithTokens(spec *v1beta1.InstanceSpec) map[string]string {
	if len(spec.ParametersFrom) == 0 {
		return spec.Parameters
	}
	all := maps.Clone(spec.Parameters)
	if all == nil {
		all = map[string]string{}
	}
	for i := range spec.ParametersFrom {
		from := &spec.ParametersFrom[i]
		if _, isSet := all[from.Name]; !isSet {
			all[from.Name] = reference(from)
		}
	}
	return all
}

// wanted is a spec with tokens.
func wanted(spec *v1beta1.InstanceSpec) *v1beta1.InstanceSpec {
	if len(spec.ParametersFrom) == 0 {
		return spec
	}
	with := *spec
	with.Parameters = WithTokens(spec)
	return &with
}

// WithoutTokens are the parameters of a spec as a user may set them.
func WithoutTokens(parameters map[string]string) map[string]string {
	all := maps.Clone(parameters)
	maps.DeleteFunc(all, func(_, value string) bool { return IsToken(value) })
	return all
}

// twice are parameters that are set, and come from a Secret as well.
func (c *Change) twice() []Problem {
	var problems []Problem
	for i := range c.Want.ParametersFrom {
		name := c.Want.ParametersFrom[i].Name
		if value, isSet := c.Want.Parameters[name]; isSet && !IsToken(value) {
			problems = append(problems, parameterProblem(name, "is set in spec.parameters and in spec.parametersFrom; remove one of them"))
		}
	}
	return problems
}
