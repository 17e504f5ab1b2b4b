package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// what a request asks for.
const (
	doRender     = "render"
	doObjects    = "objects"
	doValues     = "values"
	doVerify     = "verify"
	doChart      = "chart"
	doReferences = "references"
)

// request is a line to the process that renders.
type request struct {
	Do      string  `json:"do"`
	Name    string  `json:"name"`
	Text    string  `json:"text"`
	Context Context `json:"context"`
	// DefaultName is that of objects without a name, empty if they are refused.
	DefaultName string `json:"defaultName,omitempty"`
	// Chart is for doChart; the template is that of its values.
	Chart *Chart `json:"chart,omitempty"`
}

// reply is its answer.
type reply struct {
	Text    string            `json:"text,omitempty"`
	Objects []json.RawMessage `json:"objects,omitempty"`
	Values  map[string]string `json:"values,omitempty"`
	// References are never nil where they are asked for.
	References *References `json:"references,omitempty"`
	// Error is what is wrong with the template, empty if nothing is.
	Error string `json:"error,omitempty"`
}

// Params are parameters by name. Their numbers are the same in the process that renders:
// what is a float64 here would be none there if it were written like an integer.
type Params map[string]any

// MarshalJSON writes a float64 so that it can be told from an integer.
func (v Params) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(eachNumber(map[string]any(v), func(n any) any {
		f, ok := n.(float64)
		if !ok {
			return n
		}
		text := strconv.FormatFloat(f, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return json.Number(text)
	}))
	if err != nil {
		return nil, fmt.Errorf("encode parameters: %w", err)
	}
	return raw, nil
}

// UnmarshalJSON reads numbers as int64 where they are written so, else as float64.
func (v *Params) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	m := map[string]any{}
	if err := decoder.Decode(&m); err != nil {
		return fmt.Errorf("decode parameters: %w", err)
	}
	*v, _ = eachNumber(m, func(n any) any {
		number, ok := n.(json.Number)
		if !ok {
			return n
		}
		if i, err := number.Int64(); err == nil {
			return i
		}
		f, _ := number.Float64()
		return f
	}).(map[string]any)
	return nil
}

// eachNumber is a copy of a value with each scalar in it replaced.
func eachNumber(v any, replace func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = eachNumber(e, replace)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = eachNumber(e, replace)
		}
		return list
	default:
		return replace(v)
	}
}
