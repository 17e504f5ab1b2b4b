package message

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// ValueLength bounds a value that is quoted, in bytes.
	ValueLength = 120
	// SentenceLength bounds a sentence in a status, in bytes. The API server accepts 32 KiB
	// in a condition; a status has many sentences.
	SentenceLength = 2048
	// NoteLength bounds the note of an Event, in bytes. The API server refuses a longer one.
	NoteLength = 1024
	// named is how many items of a list are said.
	named = 10
)

// Quote returns a value in quotes. Of one that is longer than [ValueLength] it returns the
// beginning and says how long it is.
func Quote(value string) string {
	if len(value) <= ValueLength {
		return strconv.Quote(value)
	}
	return fmt.Sprintf("%s (%d bytes)", strconv.Quote(beginning(value, ValueLength)+"..."), len(value))
}

// Sentence returns a text of at most [SentenceLength].
func Sentence(text string) string { return Cut(text, SentenceLength) }

// Cut returns a text of at most length bytes. Of a longer one that is the beginning, with
// an ellipsis.
func Cut(text string, length int) string {
	const ellipsis = "..."
	if len(text) <= length {
		return text
	}
	return beginning(text, length-len(ellipsis)) + ellipsis
}

// beginning ends before a character that would be cut in two.
func beginning(text string, length int) string {
	for length > 0 && !utf8.RuneStart(text[length]) {
		length--
	}
	return text[:length]
}

// Join returns the texts of items as one, with the number of those that are left out.
func Join[T any](items []T, separator string, text func(T) string) string {
	parts := make([]string, 0, min(len(items), named)+1)
	for i, item := range items {
		if i == named {
			parts = append(parts, fmt.Sprintf("and %d more", len(items)-named))
			break
		}
		parts = append(parts, text(item))
	}
	return strings.Join(parts, separator)
}
