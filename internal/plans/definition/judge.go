package definition

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// judge is the schema of a version, as the API server applies it.
type judge struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

var errNoSchema = errors.New("the version has no schema")

func newJudge(v *apiextensionsv1.CustomResourceDefinitionVersion) (*judge, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, errNoSchema
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, err //nolint:wrapcheck // it is not shown
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is not shown
	}
	validator, _, err := validation.NewSchemaValidator(props)
	return &judge{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, err //nolint:wrapcheck // it is not shown
}

// problems are the fields of an object that would be refused, and why, in one order. The object
// gets the defaults of the schema, and loses what that does not know.
func (j *judge) problems(ctx context.Context, of map[string]any) []string {
	pruning.Prune(of, j.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(of, j.structural)
	defaulting.Default(of, j.structural)
	errs := validation.ValidateCustomResource(nil, of, j.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, j.structural, of)...)
	if j.rules != nil && len(errs) == 0 { // rules rely on the types
		invalid, _ := j.rules.Validate(ctx, nil, j.structural, of, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, invalid...)
	}
	said := make([]string, len(errs))
	for i, err := range errs {
		said[i] = withoutValue(err)
	}
	slices.Sort(said)
	return slices.Compact(said)
}

// withoutValue is an error without the value of the field, which may be a secret.
func withoutValue(err *field.Error) string {
	text := err.Type.String()
	if err.Detail != "" {
		text += ": " + err.Detail
	}
	if err.Field == "" || err.Field == "<nil>" {
		return text
	}
	return err.Field + ": " + text
}
