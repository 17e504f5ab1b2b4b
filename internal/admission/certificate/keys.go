package certificate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/admission/serve"
)

// keyPaths is where the Secret has the keys in paths.
const keyPaths = "paths.keys"

const (
	// pathLife is how long a key is in the paths of configurations. It is short, because the API
	// server shows the path to who writes while no manager can be reached.
	pathLife = 24 * time.Hour
	// pathRest is how old a key must be for a new leader to replace it. What was shown while
	// no manager ran is not worth anything for long; and leaders that change often do not
	// write for ever.
	pathRest = time.Hour
	// pathGrace is how long API servers may take to see the path of a new key.
	pathGrace = time.Hour
)

// pathKey is a key in paths.
type pathKey struct {
	key  string
	made time.Time
}

// parseKeys reads keys, the newest first. What is none is left out.
func parseKeys(raw []byte) []pathKey {
	var keys []pathKey
	for line := range strings.Lines(string(raw)) {
		key, made, _ := strings.Cut(strings.TrimSpace(line), " ")
		if at, err := strconv.ParseInt(made, 10, 64); err == nil && serve.IsKey(key) {
			keys = append(keys, pathKey{key, time.Unix(at, 0)})
		}
	}
	return keys
}

// encodeKeys is the opposite of parseKeys.
func encodeKeys(keys []pathKey) []byte {
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(k.key + " " + strconv.FormatInt(k.made.Unix(), 10) + "\n")
	}
	return []byte(text.String())
}

// needsKey is why a new key is made, empty if none is.
func (o observed) needsKey() string {
	switch {
	case len(o.keys) == 0:
		return "there is none"
	case !o.now.Before(o.keys[0].made.Add(pathLife)), o.now.Add(skew).Before(o.keys[0].made):
		return "the one before is of " + day(o.keys[0].made)
	case !o.elected.IsZero() && !o.elected.After(o.now) && !o.elected.Before(o.keys[0].made.Add(pathRest)):
		return "this replica has begun to lead"
	default:
		return ""
	}
}

// newKeys are a new key and the one before, which configurations have still.
func (o observed) newKeys() []pathKey {
	return append([]pathKey{{serve.NewKey(), o.now}}, o.keys[:min(1, len(o.keys))]...)
}

// accepted are the keys with which API servers may call: the newest, and the one
// before while it is in a configuration, or API servers may not have seen that it is not.
func (o observed) accepted() []string {
	var keys []string
	for i, k := range o.keys {
		if i == 0 || i == 1 && (o.now.Before(o.keys[0].made.Add(pathGrace)) || o.isUsed(k.key)) {
			keys = append(keys, k.key)
		}
	}
	return keys
}

func (o observed) isUsed(key string) bool {
	return slices.ContainsFunc(o.configurations, func(c configuration) bool {
		return slices.ContainsFunc(c.hooks, func(h hook) bool { return strings.HasSuffix(h.path, "/"+key) })
	})
}
