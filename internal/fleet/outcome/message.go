package outcome

import (
	"regexp"
	"strings"

	"github.com/spillway-dev/spillway/internal/message"
)

// MessageLength bounds a message that is quoted, in bytes.
const MessageLength = 1024

// temporary matches the folders that Flux works in, which have another name each time.
var temporary = regexp.MustCompile(`\S*/kustomization-[0-9]+/`)

// Shortened returns a message of Flux without what differs each time, bounded by
// [MessageLength].
func Shortened(text string) string {
	return message.Cut(strings.TrimSpace(temporary.ReplaceAllString(text, "")), MessageLength)
}
