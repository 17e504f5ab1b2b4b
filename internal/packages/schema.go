package packages

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// Schema is the JSON Schema of parameters, as KUDO writes it: a group of parameters is an
// object, and what JSON Schema does not know is in fields of their own.
type Schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        string             `json:"type"`
	Default     json.RawMessage    `json:"default,omitempty"`
	Enum        []json.RawMessage  `json:"enum,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	// Priority is the order of groups.
	Priority int `json:"priority,omitempty"`
	// ListName is the name of the parameter, by which an Instance sets it.
	ListName  string `json:"listName,omitempty"`
	Immutable bool   `json:"immutable,omitempty"`
	Trigger   string `json:"trigger,omitempty"`
	Advanced  bool   `json:"advanced,omitempty"`
	Hint      string `json:"hint,omitempty"`
}

const dialect = "http://json-schema.org/draft-07/schema#"

// SchemaOf is the schema of some parameters of the package.
func (p *Package) SchemaOf(parameters []Parameter) (*Schema, error) {
	root := &Schema{Dialect: dialect, Title: p.VersionName(), Description: p.Operator.Description, Type: "object", Properties: map[string]*Schema{}}
	groups := map[string]*Schema{}
	for i := range parameters {
		parameter := &parameters[i]
		schema, err := parameter.schema()
		if err != nil {
			return nil, fmt.Errorf("%s: parameter %s: %w", fileIn(p.From, paramsFile), parameter.Name, err)
		}
		parent := root
		if name := parameter.Group; name != "" {
			if groups[name] == nil {
				groups[name] = p.groupSchema(name)
			}
			parent = groups[name]
		}
		parent.Properties[parameter.Name] = schema
		if parameter.Required == nil || *parameter.Required {
			parent.Required = append(parent.Required, parameter.Name)
		}
	}
	for name, group := range groups {
		if root.Properties[name] != nil {
			return nil, fmt.Errorf("%s: a parameter and a group are named %s; rename one of them", fileIn(p.From, paramsFile), name)
		}
		root.Properties[name] = group
	}
	return root, nil
}

// groupSchema is the schema of a group, without its parameters.
func (p *Package) groupSchema(name string) *Schema {
	schema := &Schema{Title: name, Type: "object", Properties: map[string]*Schema{}}
	for _, g := range p.Groups {
		if g.Name == name {
			schema.Title, schema.Description, schema.Priority = cmp.Or(g.DisplayName, name), g.Description, g.Priority
		}
	}
	return schema
}

// schema is that of the parameter, with values of its type.
func (p *Parameter) schema() (*Schema, error) {
	o, err := p.Object()
	if err != nil {
		return nil, err
	}
	s := &Schema{
		Title: p.DisplayName, Description: p.Description, Type: p.schemaType(), ListName: p.Name,
		Immutable: o.IsImmutable(), Trigger: p.Trigger, Advanced: p.Advanced, Hint: p.Hint,
	}
	if p.hasDefault() {
		s.Default = native(*o.Default, s.Type)
	}
	if o.Enum != nil {
		for _, value := range *o.Enum {
			s.Enum = append(s.Enum, native(value, s.Type))
		}
	}
	return s, nil
}

// schemaType is the type as JSON Schema names it.
func (p *Parameter) schemaType() string {
	switch p.Type {
	case v1beta1.IntegerType, v1beta1.NumberType, v1beta1.BooleanType, v1beta1.ArrayType:
		return string(p.Type)
	case v1beta1.MapType:
		return "object"
	default:
		return string(v1beta1.StringType)
	}
}

// native is the text of a value as JSON.
func native(text, kind string) json.RawMessage {
	if kind != string(v1beta1.StringType) {
		if spelled := json.RawMessage(spelling(text)); json.Valid(spelled) {
			return spelled
		}
	}
	quoted, _ := json.Marshal(text) //nolint:errchkjson // a string
	return quoted
}
