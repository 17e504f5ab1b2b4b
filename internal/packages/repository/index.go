package repository

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// Index is index.yaml: the packages of a repository, by name.
type Index struct {
	APIVersion string             `json:"apiVersion"`
	Entries    map[string]Entries `json:"entries"`
	Generated  string             `json:"generated,omitempty"`
}

// Entries are the versions of one package.
type Entries []Entry

// Entry is one version of a package.
type Entry struct {
	APIVersion string `json:"apiVersion,omitempty"`
	AppVersion string `json:"appVersion,omitempty"`
	// Digest is the SHA-256 of the archive, in hexadecimal.
	Digest          string               `json:"digest,omitempty"`
	Maintainers     []v1beta1.Maintainer `json:"maintainers,omitempty"`
	Name            string               `json:"name"`
	Description     string               `json:"description,omitempty"`
	OperatorVersion string               `json:"operatorVersion,omitempty"`
	// URLs are where the archive is; those that are relative are beside the index.
	URLs []string `json:"urls"`
	// Version is how old repositories call the version of the package.
	Version string `json:"version,omitempty"`
}

// indexVersion is the only version of the format.
const indexVersion = "v1"

// ParseIndex reads index.yaml. Versions are sorted, the latest first.
func ParseIndex(raw []byte) (*Index, error) {
	index := &Index{}
	if err := yaml.Unmarshal(raw, index); err != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	if index.APIVersion != indexVersion {
		return nil, fmt.Errorf("apiVersion: %q is not known; it must be %s", index.APIVersion, indexVersion)
	}
	for name, entries := range index.Entries {
		for i := range entries {
			e := &entries[i]
			e.OperatorVersion, e.Version = cmp.Or(e.OperatorVersion, e.Version), ""
			if e.Name != name || e.OperatorVersion == "" || len(e.URLs) == 0 {
				return nil, fmt.Errorf("entries.%s: entry %d must have the name %s, an operatorVersion and urls", name, i, name)
			}
		}
		entries.sort()
	}
	return index, nil
}

// sort puts the latest first: the version of the package counts, and of the same the
// version of the application.
func (e Entries) sort() {
	slices.SortStableFunc(e, func(a, b Entry) int {
		return cmp.Or(compare(b.OperatorVersion, a.OperatorVersion), compare(b.AppVersion, a.AppVersion))
	})
}

// compare compares versions; what is no semantic version comes before those that are.
func compare(a, b string) int {
	one, err := semver.NewVersion(a)
	other, failed := semver.NewVersion(b)
	switch {
	case err == nil && failed == nil:
		return one.Compare(other)
	case err != nil && failed != nil:
		return strings.Compare(a, b)
	case err != nil:
		return -1
	default:
		return 1
	}
}

// Wanted is a version of a package; empty versions are the latest.
type Wanted struct{ Name, AppVersion, OperatorVersion string }

// String names it as messages do.
func (w Wanted) String() string {
	text := w.Name
	if w.OperatorVersion != "" {
		text += " " + w.OperatorVersion
	}
	if w.AppVersion != "" {
		text += " of application version " + w.AppVersion
	}
	return text
}

// Find is the latest version that is wanted.
func (x *Index) Find(w Wanted) (*Entry, error) {
	entries := x.Entries[w.Name]
	for i := range entries {
		if e := &entries[i]; (w.AppVersion == "" || w.AppVersion == e.AppVersion) && (w.OperatorVersion == "" || w.OperatorVersion == e.OperatorVersion) {
			return e, nil
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("package %s not found", w.Name)
	}
	var known []string
	for i := range entries {
		known = append(known, entries[i].Text())
	}
	return nil, fmt.Errorf("package %s not found; it has %s", w, atMost(known, mostNamed))
}

// mostNamed is how many versions a message names.
const mostNamed = 10

func atMost(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Text is the version as messages have it.
func (e *Entry) Text() string {
	if e.AppVersion == "" {
		return e.OperatorVersion
	}
	return e.OperatorVersion + " (application version " + e.AppVersion + ")"
}

// Search are the packages whose name has a text in it, by name; of each all versions, or
// the latest.
func (x *Index) Search(text string, all bool) []Entry {
	var found []Entry
	for _, name := range slices.Sorted(maps.Keys(x.Entries)) {
		entries := x.Entries[name]
		if !strings.Contains(name, text) || len(entries) == 0 {
			continue
		}
		if !all {
			entries = entries[:1]
		}
		found = append(found, entries...)
	}
	return found
}

// Merge adds the versions of another index that this one does not have.
func (x *Index) Merge(other *Index) {
	for name, entries := range other.Entries {
		for i := range entries {
			if !slices.ContainsFunc(x.Entries[name], entries[i].isSame) {
				x.Entries[name] = append(x.Entries[name], entries[i])
			}
		}
		x.Entries[name].sort()
	}
}

func (e *Entry) isSame(other Entry) bool {
	return e.OperatorVersion == other.OperatorVersion && e.AppVersion == other.AppVersion
}

// add adds a version, unless there is another archive of it.
func (x *Index) add(e Entry) error {
	if slices.ContainsFunc(x.Entries[e.Name], e.isSame) {
		return errors.New("package " + e.Name + " " + e.Text() + " exists in two archives; remove one of them")
	}
	x.Entries[e.Name] = append(x.Entries[e.Name], e)
	x.Entries[e.Name].sort()
	return nil
}

// Write returns the index as YAML.
func (x *Index) Write() ([]byte, error) {
	raw, err := yaml.Marshal(x)
	if err != nil {
		return nil, fmt.Errorf("write the index: %w", err)
	}
	return raw, nil
}
