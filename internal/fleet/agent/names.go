package agent

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

// nameOf joins two parts to a name that no other two have: by a hyphen if neither has
// one, and else by two. One that is not fit to be a name, or where that does not tell the
// parts apart, ends with a hash of both.
func nameOf(first, second string) string {
	whole := first + "-" + second
	if strings.Contains(first+second, "-") {
		whole = first + "--" + second
	}
	apart := strings.Count(whole, "-") == 1 || !strings.Contains(first, "--") && !strings.Contains(second, "--") &&
		!strings.HasSuffix(first, "-") && !strings.HasPrefix(second, "-")
	if apart && isName(whole) && len(whole) <= maxName {
		return whole
	}
	return fitting(whole) + "-" + hashOf([]byte(first), []byte(second))
}

// formerNameOf is what the name was when it was joined by one hyphen whatever the parts
// were, so that eu-west and mon came to the same as eu and west-mon.
func formerNameOf(first, second string) string {
	whole := first + "-" + second
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
