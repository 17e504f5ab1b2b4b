package kudo

import "strings"

// sameWords are the commands that have the same arguments in both grammars.
var sameWords = strings.NewReplacer(
	"spillway package repo ", "kubectl kudo repo ",
	"spillway package search", "kubectl kudo search",
	"spillway package new", "kubectl kudo package new",
	"spillway package add", "kubectl kudo package add",
	"spillway package create", "kubectl kudo package create",
)

// wordedError is an error that names commands as KUDO's users type them.
type wordedError struct {
	error

	text string
}

// Error implements error.
func (e wordedError) Error() string { return e.text }

// Unwrap is the error as this program has it.
func (e wordedError) Unwrap() error { return e.error }

// inGrammar names commands in an error as KUDO's users type them.
func inGrammar(err error) error {
	if err == nil {
		return nil
	}
	text := sameWords.Replace(err.Error())
	if text == err.Error() {
		return err
	}
	return wordedError{error: err, text: text}
}
