// Package template is Go's text/template, except that templates find methods of versions
// alone.
//
// Go's finds any method of any value by its name. If it is linked in, the linker keeps
// every exported method of every type, since a template could name it: a quarter of the
// program. The templates of packages see maps, and what the functions of sprig return,
// of which versions alone have methods.
package template

import (
	"reflect"

	"github.com/Masterminds/semver/v3"
)

// methods are those of versions that a template may call.
var methods = map[string]func(*semver.Version) any{
	"String":           func(v *semver.Version) any { return v.String },
	"Original":         func(v *semver.Version) any { return v.Original },
	"Major":            func(v *semver.Version) any { return v.Major },
	"Minor":            func(v *semver.Version) any { return v.Minor },
	"Patch":            func(v *semver.Version) any { return v.Patch },
	"Prerelease":       func(v *semver.Version) any { return v.Prerelease },
	"Metadata":         func(v *semver.Version) any { return v.Metadata },
	"IncPatch":         func(v *semver.Version) any { return v.IncPatch },
	"IncMinor":         func(v *semver.Version) any { return v.IncMinor },
	"IncMajor":         func(v *semver.Version) any { return v.IncMajor },
	"SetPrerelease":    func(v *semver.Version) any { return v.SetPrerelease },
	"SetMetadata":      func(v *semver.Version) any { return v.SetMetadata },
	"LessThan":         func(v *semver.Version) any { return v.LessThan },
	"LessThanEqual":    func(v *semver.Version) any { return v.LessThanEqual },
	"GreaterThan":      func(v *semver.Version) any { return v.GreaterThan },
	"GreaterThanEqual": func(v *semver.Version) any { return v.GreaterThanEqual },
	"Equal":            func(v *semver.Version) any { return v.Equal },
	"Compare":          func(v *semver.Version) any { return v.Compare },
	"MarshalJSON":      func(v *semver.Version) any { return v.MarshalJSON },
	"MarshalText":      func(v *semver.Version) any { return v.MarshalText },
	"UnmarshalJSON":    func(v *semver.Version) any { return v.UnmarshalJSON },
	"UnmarshalText":    func(v *semver.Version) any { return v.UnmarshalText },
	"Scan":             func(v *semver.Version) any { return v.Scan },
	"Value":            func(v *semver.Version) any { return v.Value },
}

// methodByName is the method of a value that has that name; an invalid value if a template
// may call none.
func methodByName(value reflect.Value, name string) reflect.Value {
	method := methods[name]
	if method == nil || !value.CanInterface() {
		return reflect.Value{}
	}
	switch v := value.Interface().(type) {
	case *semver.Version:
		if v != nil {
			return reflect.ValueOf(method(v))
		}
	case semver.Version:
		return reflect.ValueOf(method(&v))
	}
	return reflect.Value{}
}
