package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// generator makes one schema.
type generator struct {
	comments comments
	// known are the types that are defined, by the names of their definitions.
	known       map[string]reflect.Type
	definitions map[string]any
}

// kind is the word for a type.
const kind = "type"

var (
	moment    = reflect.TypeFor[time.Time]()
	duration  = reflect.TypeFor[time.Duration]()
	marshaler = reflect.TypeFor[json.Marshaler]()
)

// of is the schema of a type; a struct is a definition, to which it refers.
func (g *generator) of(t reflect.Type) (map[string]any, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == moment:
		return map[string]any{kind: "string", "format": "date-time"}, nil
	case t == duration:
		return map[string]any{kind: "integer", "description": "nanoseconds"}, nil
	case t.Implements(marshaler):
		return nil, fmt.Errorf("%s writes itself", t)
	}
	switch t.Kind() { //nolint:exhaustive // the default says it of the rest
	case reflect.String:
		return map[string]any{kind: "string"}, nil
	case reflect.Bool:
		return map[string]any{kind: "boolean"}, nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{kind: "integer"}, nil
	case reflect.Interface:
		return map[string]any{}, nil
	case reflect.Slice:
		items, err := g.of(t.Elem())
		return map[string]any{kind: "array", "items": items}, err
	case reflect.Struct:
		return map[string]any{"$ref": "#/$defs/" + t.Name()}, g.define(t)
	default:
		return nil, fmt.Errorf("%s has no schema", t)
	}
}

// define adds the definition of a struct, unless there is one.
func (g *generator) define(t reflect.Type) error {
	switch known := g.known[t.Name()]; {
	case known == t:
		return nil
	case known != nil:
		return fmt.Errorf("two types are called %s: %s and %s", t.Name(), known.PkgPath(), t.PkgPath())
	}
	g.known[t.Name()] = t
	o := object{properties: map[string]any{}}
	if err := g.fields(t, &o); err != nil {
		return err
	}
	definition := map[string]any{kind: "object", "properties": o.properties}
	if len(o.required) > 0 {
		definition["required"] = o.required
	}
	about, err := g.comments.of(t, "")
	if about != "" {
		definition["description"] = about
	}
	g.definitions[t.Name()] = definition
	return err
}

// object is a struct as JSON has it.
type object struct {
	properties map[string]any
	required   []string
}

// fields adds the fields of a struct, and those of what is embedded.
func (g *generator) fields(t reflect.Type, o *object) error {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		var err error
		switch {
		case f.Anonymous && name == "":
			err = g.fields(f.Type, o)
		case !f.IsExported() || name == "-":
		case name == "":
			err = errors.New("it has no name")
		default:
			err = g.field(t, &f, o, name, strings.Contains(options, "omit"))
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
	}
	return nil
}

// field adds a field, under its name in JSON.
func (g *generator) field(of reflect.Type, f *reflect.StructField, o *object, name string, isOptional bool) error {
	schema, err := g.of(f.Type)
	if err != nil {
		return err
	}
	about, err := g.comments.of(of, f.Name)
	if about != "" {
		schema["description"] = about
	}
	if !isOptional {
		o.required = append(o.required, name)
		if schema[kind] == "array" {
			schema[kind] = []string{"array", "null"} // an empty one may be either
		}
	}
	o.properties[name] = schema
	return err
}
