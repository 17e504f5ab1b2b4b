// Package dependency finds the packages that a package needs: those that its tasks of the
// kind KudoOperator install.
//
// # Invariants
//
//   - What a task names is pinned to the versions that were found, so that what was checked is
//     what is installed.
//   - A circle is an error that names it, and a package is read once, however often it is
//     named.
package dependency

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/packages"
)

// Most bounds how many packages a package needs, with those that they need.
const Most = 50

// Reference names a package: as a task does, and with the directory of that task's package
// where it is a path.
type Reference struct{ Package, AppVersion, OperatorVersion string }

// VersionName is the name of the OperatorVersion that it names, if it has a version.
func (r Reference) VersionName() string {
	parts := slices.DeleteFunc([]string{r.Package, r.AppVersion, r.OperatorVersion}, func(s string) bool { return s == "" })
	return strings.Join(parts, "-")
}

// Load reads a package; none if it is installed and nothing is to be read.
type Load func(context.Context, Reference) (*packages.Package, error)

// Resolve returns the packages that a package needs, each after those that it needs itself,
// and pins their versions in its tasks and in theirs.
func Resolve(ctx context.Context, p *packages.Package, load Load) ([]*packages.Package, error) {
	r := resolution{ctx: ctx, load: load, known: map[Reference]*packages.Package{}}
	if err := r.visit(p, []string{p.VersionName()}); err != nil {
		return nil, err
	}
	return r.found, nil
}

// resolution is what was found so far.
type resolution struct {
	ctx   context.Context //nolint:containedctx // it lives as long as one call
	load  Load
	known map[Reference]*packages.Package
	found []*packages.Package
}

func (r *resolution) visit(p *packages.Package, path []string) error {
	for i := range p.Operator.Tasks {
		if t := &p.Operator.Tasks[i]; t.Kind == v1beta1.KudoOperatorTask {
			if err := r.follow(p, t, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow finds what a task needs, pins it, and goes on there.
func (r *resolution) follow(p *packages.Package, t *v1beta1.Task, path []string) error {
	needed, err := r.read(p, t)
	if err != nil {
		return fmt.Errorf("%s: task %s: %w", p.From, t.Name, err)
	}
	if needed == nil {
		return nil // it is installed
	}
	name := needed.VersionName()
	if at := slices.Index(path, name); at >= 0 {
		return fmt.Errorf("packages need each other in a circle: %s; remove one of the KudoOperator tasks", strings.Join(append(slices.Clone(path[at:]), name), " needs "))
	}
	o := &needed.Operator
	t.Spec.Package, t.Spec.AppVersion, t.Spec.OperatorVersion = o.Name, o.AppVersion, o.OperatorVersion
	if slices.ContainsFunc(r.found, func(other *packages.Package) bool { return other.VersionName() == name }) {
		return nil
	}
	if err := r.visit(needed, append(slices.Clone(path), name)); err != nil {
		return err
	}
	if r.found = append(r.found, needed); len(r.found) > Most {
		return fmt.Errorf("needs more than %d packages", Most)
	}
	return nil
}

// read reads the package that a task names.
func (r *resolution) read(p *packages.Package, t *v1beta1.Task) (*packages.Package, error) {
	reference := Reference{Package: t.Spec.Package, AppVersion: t.Spec.AppVersion, OperatorVersion: t.Spec.OperatorVersion}
	if strings.HasPrefix(reference.Package, "./") || strings.HasPrefix(reference.Package, "../") {
		if info, err := os.Stat(p.From); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("package %s is beside its package, and %s is no directory; name it by a URL or by its name in a repository", reference.Package, p.From)
		}
		reference.Package = "./" + filepath.Join(p.From, reference.Package)
		if filepath.IsAbs(p.From) {
			reference.Package = strings.TrimPrefix(reference.Package, "./")
		}
	}
	if known, ok := r.known[reference]; ok {
		return known, nil
	}
	if len(r.known) > Most {
		return nil, errors.New("too many packages are needed")
	}
	needed, err := r.load(r.ctx, reference)
	if err != nil {
		return nil, err
	}
	r.known[reference] = needed
	return needed, nil
}
