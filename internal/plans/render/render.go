package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Context is what a template can refer to.
type Context struct {
	// Name and Namespace are the Instance's.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// OperatorName, OperatorVersion and AppVersion are those of the package.
	OperatorName    string `json:"operatorName"`
	OperatorVersion string `json:"operatorVersion"`
	AppVersion      string `json:"appVersion"`
	// PlanName, PhaseName and StepName are where the task stands.
	PlanName  string `json:"planName"`
	PhaseName string `json:"phaseName"`
	StepName  string `json:"stepName"`
	// Params are the parameters, Pipes the names of what Pipes have kept.
	Params Params            `json:"params"`
	Pipes  map[string]string `json:"pipes"`
}

// Render executes a template. The name is that of its file, for errors.
func Render(name, text string, c Context) (string, error) {
	r, err := ask(&request{Do: doRender, Name: name, Text: text, Context: c})
	return r.Text, err
}

// Objects executes a template and reads the objects of the manifest that it makes. An
// object without a name gets the default; where that is empty, it is refused.
func Objects(name, text string, c Context, defaultName string) ([]*unstructured.Unstructured, error) {
	return objectsOf(&request{Do: doObjects, Name: name, Text: text, Context: c, DefaultName: defaultName})
}

func objectsOf(asked *request) ([]*unstructured.Unstructured, error) {
	r, err := ask(asked)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(r.Objects))
	for i, raw := range r.Objects {
		objects[i] = &unstructured.Unstructured{}
		if err := objects[i].UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("template %s: %w", asked.Name, err)
		}
	}
	return objects, nil
}

// Values executes a template and reads the parameters of an Instance in what it makes.
// Values that are not strings are written as YAML, as an Instance has them.
func Values(name, text string, c Context) (map[string]string, error) {
	r, err := ask(&request{Do: doValues, Name: name, Text: text, Context: c})
	return r.Values, err
}

// Verify finds what is wrong with a template without executing it: that it
// cannot be parsed, or names a function that is refused.
func Verify(name, text string) error {
	_, err := ask(&request{Do: doVerify, Name: name, Text: text})
	return err
}

// ReferencesOf finds what a template refers to, without executing it.
func ReferencesOf(name, text string) (*References, error) {
	r, err := ask(&request{Do: doReferences, Name: name, Text: text})
	if err != nil {
		return nil, err
	}
	return r.References, nil
}
