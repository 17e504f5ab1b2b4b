package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// schemas returns those of all answers, of the module in the working directory.
func schemas() (map[string]map[string]any, error) {
	r := &jsonschema.Reflector{Anonymous: true, AllowAdditionalProperties: true, Mapper: func(t reflect.Type) *jsonschema.Schema {
		if t == reflect.TypeFor[record.Offset]() {
			return &jsonschema.Schema{Type: "string", Description: "a duration since the change, such as 1m1s"}
		}
		return nil
	}}
	for _, folder := range []string{"internal/describe", "internal/simulate"} {
		if err := r.AddGoComments("github.com/spillway-dev/spillway", folder, jsonschema.WithFullComment()); err != nil {
			return nil, fmt.Errorf("read the comments of %s: %w", folder, err)
		}
	}
	for name, comment := range r.CommentMap {
		r.CommentMap[name] = strings.Join(strings.Fields(comment), " ")
	}
	all := map[string]map[string]any{}
	for name, answer := range answers {
		schema := r.Reflect(answer.of)
		schema.Title = answer.title
		raw, err := json.Marshal(schema)
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", name, err)
		}
		fields := map[string]any{}
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", name, err)
		}
		letListsBeNull(fields["$defs"])
		all[name] = fields
	}
	return all, nil
}

// letListsBeNull says of the required lists in definitions that an empty one may be null.
func letListsBeNull(definitions any) {
	of, _ := definitions.(map[string]any)
	for _, d := range of {
		definition, _ := d.(map[string]any)
		properties, _ := definition["properties"].(map[string]any)
		required, _ := definition["required"].([]any)
		for _, name := range required {
			if field, _ := properties[name.(string)].(map[string]any); field["type"] == "array" {
				field["type"] = []string{"array", "null"}
			}
		}
	}
}
