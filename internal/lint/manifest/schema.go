package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/spillway-dev/spillway/internal/manifests"
)

// Schemas are those of Spillway's kinds, by which the API server judges. The rules
// in CEL that some of them have besides are left to it.
type Schemas map[schema.GroupVersionKind]*spec.Schema

// LoadSchemas reads them once: they are part of the program.
var LoadSchemas = sync.OnceValues(newSchemas)

func newSchemas() (Schemas, error) {
	definitions, err := manifests.CustomKinds()
	if err != nil {
		return nil, fmt.Errorf("read the kinds of Spillway: %w", err)
	}
	s := Schemas{}
	for _, definition := range definitions {
		if err := s.add(definition); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s Schemas) add(definition runtime.Object) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := roundTrip(definition, crd); err != nil {
		return err
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		schemaOf := &spec.Schema{}
		if err := roundTrip(v.Schema.OpenAPIV3Schema, schemaOf); err != nil {
			return err
		}
		s[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = schemaOf
	}
	return nil
}

// roundTrip makes one type of the same JSON another.
func roundTrip(from, to any) error {
	raw, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(raw, to)
	}
	if err != nil {
		return fmt.Errorf("read the schema of a kind: %w", err)
	}
	return nil
}

// Refusal is why the API server would not take a field.
type Refusal struct{ Field, Reason string }

// Refusals are those of an object; none of a kind whose schema is not known.
func (s Schemas) Refusals(o *Object) []Refusal {
	known, ok := s[o.Object.GroupVersionKind()]
	if !ok {
		return nil
	}
	result := validate.NewSchemaValidator(known, nil, "", strfmt.Default).Validate(o.Object.Object)
	var found []Refusal
	for _, err := range result.Errors {
		if r := refusalOf(err); !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b Refusal) int { return strings.Compare(a.Field+a.Reason, b.Field+b.Reason) })
	return found
}

func refusalOf(err error) Refusal {
	if v, ok := errors.AsType[*openapierrors.Validation](err); ok {
		field := strings.TrimPrefix(v.Name, ".")
		return Refusal{field, strings.TrimPrefix(err.Error(), v.Name+" in body ")}
	}
	return Refusal{"", err.Error()}
}
