package outcome

import (
	"regexp"
	"strings"
)

// MessageLength bounds a message that is quoted, in bytes.
const MessageLength = 1024

// temporary matches the folders that Flux works in, which have another name each time.
var temporary = regexp.MustCompile(`\S*/kustomization-[0-9]+/`)

// Shortened returns a message of Flux without what differs each time, bounded by
// [MessageLength].
func Shortened(message string) string {
	message = strings.TrimSpace(temporary.ReplaceAllString(message, ""))
	if len(message) <= MessageLength {
		return message
	}
	return strings.ToValidUTF8(message[:MessageLength], "") + " ..."
}
