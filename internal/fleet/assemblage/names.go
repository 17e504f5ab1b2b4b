package assemblage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
)

const (
	// maxName is how long a name may be: Flux puts it into labels.
	maxName = 63
	// hashLength is how much of a hash tells two names apart.
	hashLength = 10
)

var (
	// notInNames is what the name of an object may not contain.
	notInNames = regexp.MustCompile(`[^a-z0-9-]+`)
	// isName is true of what is fit to be one.
	isName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString
)

// nameOf joins parts to a name. One that is not fit to be a name ends with a hash of
// what it should have been.
func nameOf(parts ...string) string {
	whole := strings.Join(parts, "-")
	if isName(whole) && len(whole) <= maxName {
		return whole
	}
	return fitting(whole) + "-" + hashOf([]byte(whole))
}

// hashedName is a name that ends with a hash of something.
func hashedName(part string, of any) string {
	raw, _ := json.Marshal(of) //nolint:errchkjson // plain structs
	return fitting(part) + "-" + hashOf([]byte(part), raw)
}

// fitting is what of a text can stand in a name, before a hash.
func fitting(s string) string {
	s = notInNames.ReplaceAllString(strings.ToLower(s), "-")
	s = strings.Trim(s[:min(len(s), maxName-1-hashLength)], "-")
	if s == "" {
		return "x" // all that is left is the hash
	}
	return s
}

// Hash is a short hash of something that was applied.
func Hash(raw []byte) string { return hashOf(raw) }

func hashOf(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write(part) // it never fails
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:hashLength]
}
