package task

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// Hidden are values of parameters that come from Secrets: no message says them. The API server,
// and templates that cannot be rendered, quote what they were given.
type Hidden []string

const (
	// hiddenText stands in messages in place of a value.
	hiddenText = "(hidden)"
	// shortest is the beginning of a value that is hidden also where a message has been cut. A
	// shorter value is hidden where it is quoted.
	shortest = 6
)

// NewHidden hides values, each of their lines, and how a Secret has them.
func NewHidden(values []string) Hidden {
	var all Hidden
	for _, value := range values {
		quoted := strconv.Quote(value)
		all = append(all, value, quoted[1:len(quoted)-1], base64.StdEncoding.EncodeToString([]byte(value)))
		for line := range strings.Lines(value) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	all = slices.DeleteFunc(all, func(value string) bool { return value == "" })
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(all)
}

// In is a text without the values.
func (h Hidden) In(text string) string {
	for _, value := range h {
		if len(value) < shortest {
			text = strings.ReplaceAll(text, `"`+value+`"`, hiddenText)
			continue
		}
		text = hideFrom(text, value)
	}
	return text
}

// hideFrom hides what begins as the value does, for as long as it goes on so.
func hideFrom(text, value string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, value[:shortest])
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString(hiddenText)
		n := 0
		for rest := value[shortest:]; n < len(rest) && n < len(after) && after[n] == rest[n]; n++ {
		}
		text = after[n:]
	}
}

// hide hides the values in what a task says.
func (f *Finding) hide(h Hidden) {
	if len(h) == 0 {
		return
	}
	f.Lacks, f.Failed, f.Fatal = h.In(f.Lacks), h.In(f.Failed), h.In(f.Fatal)
	for i := range f.Left {
		f.Left[i] = h.In(f.Left[i])
	}
	if f.Blocked != nil {
		f.Blocked.Message = h.In(f.Blocked.Message)
	}
}
