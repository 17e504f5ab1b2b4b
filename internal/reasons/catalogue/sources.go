package catalogue

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// sources are packages as they were read, and what was found in them.
type sources struct {
	packages []*packages.Package
	// reason is the type of reasons, nil if nothing knows it.
	reason types.Type
	// sinks are the fields that show a reason.
	sinks map[types.Object]Use
	// constants are the reasons, and words where each was declared first.
	constants []*declared
	words     map[string]*declared
	// aliases are the names for a constant of another package.
	aliases map[types.Object]types.Object
	// mentions are the packages that name a constant, or an alias of it.
	mentions map[types.Object][]string
	// flows are where values go, in each package.
	flows    map[string]flow
	problems []string
}

// declared is a reason as it was declared.
type declared struct {
	Entry

	object types.Object
}

// place is where a reason is shown: the field Reason of a type.
type place struct {
	pkg, name string
	use       Use
}

// places are all such fields. A status of an assemblage and of a module repeats
// reasons beside its conditions; the condition of the config ring is kept in an
// annotation.
func places() []place {
	return []place{
		{enginePath, "Hold", UsedInHold},
		{enginePath, "Block", UsedInHold},
		{standingPath, "Link", UsedInChain},
		{"k8s.io/apimachinery/pkg/apis/meta/v1", "Condition", UsedInCondition},
		{module + "/internal/config/workload", "Condition", UsedInCondition},
		{module + "/api/fleet/v1alpha1", "SyncStatus", UsedInCondition},
		{module + "/api/fleet/v1alpha1", "FailingCluster", UsedInCondition},
		{"k8s.io/api/events/v1", "Event", UsedInEvent},
		{"k8s.io/api/core/v1", "Event", UsedInEvent},
	}
}

func newSources(loaded []*packages.Package) *sources {
	s := &sources{
		packages: loaded, sinks: map[types.Object]Use{}, words: map[string]*declared{},
		aliases: map[types.Object]types.Object{}, mentions: map[types.Object][]string{}, flows: map[string]flow{},
	}
	seen := map[*types.Package]bool{}
	for _, p := range loaded {
		s.learn(p.Types, seen)
	}
	return s
}

// learn finds the type and the fields in a package and in what it imports.
func (s *sources) learn(p *types.Package, seen map[*types.Package]bool) {
	if seen[p] {
		return
	}
	seen[p] = true
	if p.Path() == enginePath {
		s.reason = p.Scope().Lookup("Reason").Type()
	}
	for _, at := range places() {
		if field := fieldOf(p, at); field != nil {
			s.sinks[field] = at.use
		}
	}
	for _, imported := range p.Imports() {
		s.learn(imported, seen)
	}
}

// fieldOf is the field that a place is about, nil if the package has none.
func fieldOf(p *types.Package, at place) types.Object {
	named := p.Scope().Lookup(at.name)
	if named == nil || p.Path() != at.pkg {
		return nil
	}
	field, _, _ := types.LookupFieldOrMethod(named.Type(), true, p, "Reason")
	return field
}

// isReason is true of the type itself.
func (s *sources) isReason(t types.Type) bool {
	return s.reason != nil && t != nil && types.Identical(t, s.reason)
}

// complainf notes a problem with its place, relative to the package's folder.
func (s *sources) complainf(at token.Pos, format string, args ...any) {
	position := s.packages[0].Fset.Position(at)
	folder, file := filepath.Split(position.Filename)
	s.problems = append(s.problems, fmt.Sprintf("%s/%s:%d: %s", filepath.Base(folder), file, position.Line, fmt.Sprintf(format, args...)))
}

// collect finds the constants, and where values flow.
func (s *sources) collect() {
	for _, p := range s.packages {
		s.flows[p.PkgPath] = flow{}
		for _, file := range p.Syntax {
			s.collectConstants(p, file)
			f := flowing{sources: s, info: p.TypesInfo, flow: s.flows[p.PkgPath]}
			ast.PreorderStack(file, nil, f.visit)
		}
		for _, object := range p.TypesInfo.Uses {
			if c, ok := object.(*types.Const); ok && s.isReason(c.Type()) && !slices.Contains(s.mentions[c], p.PkgPath) {
				s.mentions[c] = append(s.mentions[c], p.PkgPath)
			}
		}
	}
}
