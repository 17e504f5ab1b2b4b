package source

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Error is a mistake in a manifest, where it stands, and how to fix it.
type Error struct {
	// File is as in [Document], and Line 0 if it is about the file as a whole.
	File string
	Line int
	// Field is the field that is wrong, such as "spec.replicas"; empty if it is not
	// one field.
	Field string
	// Problem says what is wrong, and Fix what to do about it.
	Problem, Action string
	cause           error
}

// Errors are the mistakes that an error of this package consists of, in order.
func Errors(err error) []*Error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if one, ok := errors.AsType[*Error](err); ok {
			return []*Error{one}
		}
		return nil
	}
	var mistakes []*Error
	for _, err := range joined.Unwrap() {
		mistakes = append(mistakes, Errors(err)...)
	}
	return mistakes
}

// Unwrap is what the mistake was noticed by, nil if it was noticed here.
func (e *Error) Unwrap() error { return e.cause }

// lineInMessage is how the YAML library says where it stopped.
var lineInMessage = regexp.MustCompile(`(?s)^.*?line (\d+): (?:\w+: line \d+: )?(.*)$`)

// fromZero is what begins the messages in which the library counts lines from zero.
const fromZero = "did not find expected"

// located takes apart what the YAML library says about a chunk.
func (c chunk) located(err error) (line int, problem string) {
	inChunk, problem := Locate(err)
	if inChunk == 0 {
		return c.first, problem
	}
	return c.line(min(inChunk, c.lines())), problem
}

// Locate takes apart what the YAML library says: the line, 0 if it names none, and what is
// wrong there.
func Locate(err error) (line int, problem string) {
	message := strings.Join(strings.Fields(err.Error()), " ")
	found := lineInMessage.FindStringSubmatch(message)
	if found == nil {
		return 0, strings.TrimPrefix(strings.TrimPrefix(message, "error converting YAML to JSON: "), "yaml: ")
	}
	line, _ = strconv.Atoi(found[1])
	if strings.HasPrefix(found[2], fromZero) {
		line++
	}
	return line, found[2]
}

// Error is the mistake in one line.
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%s: %s; %s", at, e.Problem, e.Action)
}
