package render

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Memo remembers the objects that templates have made, for one pass and the one that follows
// it: a decision is made several times in a pass, and a template makes the same of the same
// values. A nil Memo remembers nothing. It is not safe for use at the same time.
type Memo struct {
	now, before map[made][]*unstructured.Unstructured
}

// made is what objects are made of.
type made struct{ name, text, defaultName, chart, context string }

// Next is the memo of the pass that follows.
func (m *Memo) Next() *Memo {
	next := &Memo{now: map[made][]*unstructured.Unstructured{}}
	if m != nil {
		next.before = m.now
	}
	return next
}

// Objects is [Objects], of a template that is executed once. An error is not remembered.
func (m *Memo) Objects(name, text string, c Context, defaultName string) ([]*unstructured.Unstructured, error) {
	return m.objects(made{name: name, text: text, defaultName: defaultName}, c, func() ([]*unstructured.Unstructured, error) {
		return Objects(name, text, c, defaultName)
	})
}

// Chart is [Chart.Objects], of a chart that is rendered once.
func (m *Memo) Chart(chart *Chart, c Context) ([]*unstructured.Unstructured, error) {
	return m.objects(made{name: chart.ValuesName, text: chart.Values, chart: chart.Archive}, c, func() ([]*unstructured.Unstructured, error) {
		return chart.Objects(c)
	})
}

func (m *Memo) objects(key made, c Context, render func() ([]*unstructured.Unstructured, error)) ([]*unstructured.Unstructured, error) {
	if m == nil {
		return render()
	}
	context, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", key.name, err)
	}
	key.context = string(context)
	objects, ok := m.now[key]
	if !ok {
		objects, ok = m.before[key]
	}
	if !ok {
		if objects, err = render(); err != nil {
			return nil, err
		}
	}
	m.now[key] = objects
	return copied(objects), nil
}

// copied are objects that can be changed.
func copied(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, len(objects))
	for i, u := range objects {
		all[i] = u.DeepCopy()
	}
	return all
}
