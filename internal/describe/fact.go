package describe

// Fact is something else to know of an object: what it is about, and what there is to
// know, in columns.
type Fact struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// FactOf is a fact of one or more columns.
func FactOf(name string, values ...string) Fact { return Fact{Name: name, Values: values} }
