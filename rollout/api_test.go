package rollout_test

import (
	"flag"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

var api = flag.Bool("api", false, "write testdata/api.txt again")

// TestAPI compares all exported declarations with those of testdata/api.txt. Users
// import this package, so that a change of it must be meant.
func TestAPI(t *testing.T) {
	const file = "testdata/api.txt"

	got := exported(t)
	if *api {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the API differs from %s (-was +is).\nAn added name is compatible. One that is gone, or means something else, "+
			"breaks users: do it only with a release whose notes say so.\nIf it is meant: go test ./rollout -run TestAPI -api\n%s", file, diff)
	}
}

// exported renders every exported declaration of the package, a line each.
func exported(t *testing.T) string {
	t.Helper()

	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadTypes}, ".")
	if err != nil || len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		t.Fatal(err, loaded)
	}

	pkg := loaded[0].Types

	var lines []string

	for _, name := range pkg.Scope().Names() {
		if object := pkg.Scope().Lookup(name); object.Exported() {
			lines = append(lines, declared(pkg, object)...)
		}
	}

	slices.Sort(lines)

	return strings.Join(lines, "\n") + "\n"
}

// declared is an object with its fields and methods.
func declared(pkg *types.Package, object types.Object) []string {
	qualify := types.RelativeTo(pkg)

	name, isType := object.(*types.TypeName)
	if !isType {
		line := types.ObjectString(object, qualify)
		if c, isConst := object.(*types.Const); isConst {
			line += " = " + c.Val().ExactString()
		}

		return []string{line}
	}

	fields, isStruct := name.Type().Underlying().(*types.Struct)
	if !isStruct {
		return append([]string{types.ObjectString(object, qualify)}, methods(name, qualify)...)
	}

	lines := []string{"type " + name.Name() + " struct"}

	for field := range fields.Fields() {
		if field.Exported() {
			lines = append(lines, "field "+name.Name()+"."+field.Name()+" "+types.TypeString(field.Type(), qualify))
		}
	}

	return append(lines, methods(name, qualify)...)
}

func methods(name *types.TypeName, qualify types.Qualifier) []string {
	var lines []string

	set := types.NewMethodSet(types.NewPointer(name.Type()))
	for method := range set.Methods() {
		if method.Obj().Exported() {
			lines = append(lines, types.ObjectString(method.Obj(), qualify))
		}
	}

	return lines
}
