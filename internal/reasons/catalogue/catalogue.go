package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const (
	// module is the path of the module whose reasons these are.
	module = "github.com/spillway-dev/spillway"
	// enginePath is that of the package that has the type.
	enginePath = module + "/rollout"
	// chainPath is that of the package that has the links of what explain shows.
	chainPath = module + "/internal/describe/explain/chain"
)

// Use is where a reason is shown.
type Use string

// Where reasons are shown.
const (
	// UsedInHold: why a unit waits; so it is what explain shows.
	UsedInHold Use = "hold"
	// UsedInCondition: a condition, or another reason in a status.
	UsedInCondition Use = "condition"
	// UsedInEvent: an Event.
	UsedInEvent Use = "Event"
	// UsedInMetric: the label "reason" of a metric.
	UsedInMetric Use = "metric"
	// UsedInChain: a link of what explain shows beneath a hold.
	UsedInChain Use = "explain"
)

// Entry is one reason.
type Entry struct {
	// Word is what is shown, Name how the code calls it: "config.ReasonConfigMissing".
	Word, Name string
	// Ring is who says it; see [Rings].
	Ring string
	// Cause is a sentence without a full stop, and so is Fix.
	Cause, Action string
	// Uses are where it is shown, in the order of the constants.
	Uses []Use
}

// The parts of the code that give reasons, besides the rings.
const (
	engine   = "engine"
	shared   = "shared"
	commands = "commands"
	// beneath is what explain knows of what no ring decides about.
	beneath = "describe"
)

// Rings are who gives reasons, in the order in which the page has them.
func Rings() []string {
	return []string{engine, shared, "config", "zones", "plans", "fleet", beneath, commands}
}

// ringOf is the ring of a package.
func ringOf(path string) string {
	if path == enginePath {
		return engine
	}
	inside := strings.TrimPrefix(path, module+"/internal/")
	first, _, _ := strings.Cut(inside, "/")
	switch first {
	case "reasons":
		return shared
	case "cli":
		return commands
	default:
		return first
	}
}

// Catalogue is what was found.
type Catalogue struct {
	// Entries are sorted by ring, and then by word.
	Entries []Entry
	// Problems are what breaks the rules, each with its place in the sources.
	Problems []string
}

// Read reads the packages that match the patterns, as the go command understands
// them in a folder. Code that does not compile is an error.
func Read(folder string, patterns ...string) (*Catalogue, error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: folder}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", strings.Join(patterns, " "), err)
	}
	if err := failures(loaded); err != nil {
		return nil, err
	}
	s := newSources(loaded)
	s.collect()
	s.check()
	return &Catalogue{Entries: s.entries(), Problems: s.problems}, nil
}

// failures are why packages could not be read.
func failures(loaded []*packages.Package) error {
	var all []error
	for _, p := range loaded {
		for _, err := range p.Errors {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// entries are the constants that were found, with where they flow.
func (s *sources) entries() []Entry {
	entries := make([]Entry, 0, len(s.constants))
	for _, c := range s.constants {
		c.Uses = s.usesOf(c.object)
		if len(c.Uses) == 0 {
			s.complainf(c.object.Pos(), "%s is shown nowhere; remove it", c.Name)
		}
		entries = append(entries, c.Entry)
	}
	rings := Rings()
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(slices.Index(rings, a.Ring)-slices.Index(rings, b.Ring), cmp.Compare(a.Word, b.Word))
	})
	return entries
}
