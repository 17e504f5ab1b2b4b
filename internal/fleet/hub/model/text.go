package model

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// saidLength bounds what others have said where it is quoted.
const SaidLength = 200

// short is the beginning of a text, on one line.
func Short(text string, length int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "..."
}

func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// earlier is the earlier of two moments, of which zero means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isOlder compares resource versions, as far as they are known.
func IsOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0 || a == "" && b != ""
}

func Newer(a, b string) string {
	if a == "" || IsOlder(a, b) {
		return b
	}
	return a
}
