package admission

import (
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const maxTimeoutSeconds = 30 // the API server's limit

// Validate says what is wrong with the webhooks that a program declares.
func Validate(webhooks []Webhook) error {
	var errs []error
	names, paths := map[string]bool{}, map[string]bool{}
	for _, w := range webhooks {
		if err := w.validate(); err != nil {
			errs = append(errs, fmt.Errorf("webhook %q: %w", w.Name, err))
		}
		if names[w.Name] || paths[w.Path] {
			errs = append(errs, fmt.Errorf("webhook %q: its name or path %q is used twice", w.Name, w.Path))
		}
		names[w.Name], paths[w.Path] = true, true
	}
	return errors.Join(errs...)
}

func (w Webhook) validate() error {
	switch {
	case len(validation.IsFullyQualifiedName(nil, w.Name)) > 0:
		return errors.New("its name must be a domain name of three parts or more")
	case !strings.HasPrefix(w.Path, "/") || strings.ContainsAny(w.Path, "{} "):
		return fmt.Errorf("invalid path %q", w.Path)
	case w.FailurePolicy != admissionregistrationv1.Ignore && w.FailurePolicy != admissionregistrationv1.Fail:
		return errors.New("its failure policy must be Ignore or Fail")
	case w.TimeoutSeconds < 1 || w.TimeoutSeconds > maxTimeoutSeconds:
		return fmt.Errorf("its timeout must be between 1 and %d seconds", maxTimeoutSeconds)
	case w.Marked && w.Mutating:
		return errors.New("it cannot be marked, which is for webhooks that allow or refuse")
	case w.ReinvocationPolicy != nil && !w.Mutating:
		return errors.New("only a mutating webhook has a reinvocation policy")
	}
	return nil
}
