package packages

import (
	"errors"
	"fmt"

	"github.com/spillway-dev/spillway/internal/source"
)

// What a user does about archives that are not whole, and about what does not belong to a
// package.
const (
	fetchAgain   = "pack or download it again"
	removeOthers = "remove what is no template"
)

// refuse is what keeps a package from being read; [about] says which.
func refuse(action, problem string, args ...any) *source.Error {
	return &source.Error{Problem: fmt.Sprintf(problem, args...), Action: action}
}

// about names the package, or the file of it, that an error is about.
func about(file string, err error) error {
	refusal, ok := errors.AsType[*source.Error](err)
	if !ok {
		return fmt.Errorf("%s: %w", file, err)
	}
	named := *refusal
	named.File = file
	return &named
}
