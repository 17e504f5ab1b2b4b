package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/source"
)

// assumeFile stands beside manifests, and names what --assume would, one a line.
const assumeFile = ".spillwayassume"

// lacks are the config that Pods of the manifests need and no manifest has, each with the
// keys that are needed.
type lacks map[content.Object]map[string]bool

// assumptions are the config that is taken to exist though no manifest has it: what a
// person has named, and what something among the manifests may make.
func (s *simulation) assumptions() ([]simulate.Assumption, error) {
	asked, fromFiles, err := s.asked()
	if err != nil {
		return nil, err
	}
	m, err := s.copied()
	if err != nil {
		return nil, err
	}
	missing := lacksOf(m)
	var assumed []simulate.Assumption
	met := map[content.Object]bool{}
	for _, ref := range slices.SortedFunc(maps.Keys(missing), content.Object.Compare) {
		anywhere := content.Object{Kind: ref.Kind, Name: ref.Name}
		why := m.PossibleMaker(ref)
		switch {
		case asked[anywhere]:
			met[anywhere], why = true, "--assume"
		case fromFiles[anywhere] != "":
			why = fromFiles[anywhere]
		case why == "":
			continue
		}
		assumed = append(assumed, simulate.Assume(ref, slices.Sorted(maps.Keys(missing[ref])), why))
	}
	for ref := range asked {
		if !met[ref] {
			return nil, fmt.Errorf("--assume: no Pod lacks %s %s; correct the name, or leave it out", ref.Kind, ref.Name)
		}
	}
	return assumed, nil
}

// copied are the manifests as lint reads them, which completes what it reads.
func (s *simulation) copied() (*manifest.Manifests, error) {
	scheme, err := kube.NewScheme()
	if err != nil {
		return nil, err
	}
	documents := slices.Clone(s.documents)
	for i := range documents {
		documents[i].Object = documents[i].Object.DeepCopy()
	}
	return manifest.New(documents, nil, manifest.Options{Scheme: scheme, Namespace: s.namespace, Now: s.env.Now()}), nil
}

func lacksOf(m *manifest.Manifests) lacks {
	missing := lacks{}
	for _, o := range m.Objects {
		template, _ := o.Pods()
		if template == nil {
			continue
		}
		for _, use := range content.References(o.Namespace(), &template.Spec, nil, false) {
			if !use.Required || m.Configs[use.Object] != nil {
				continue
			}
			if missing[use.Object] == nil {
				missing[use.Object] = map[string]bool{}
			}
			for _, key := range use.Keys {
				missing[use.Object][key.Name] = true
			}
		}
	}
	return missing
}

// asked is what --assume names, and what files beside the manifests name, each with its
// file; whatever the namespace.
func (s *simulation) asked() (asked map[content.Object]bool, fromFiles map[content.Object]string, err error) {
	asked, fromFiles = map[content.Object]bool{}, map[content.Object]string{}
	for _, text := range s.assume {
		ref, ok := assumable(text)
		if !ok {
			return nil, nil, fmt.Errorf("--assume: %q cannot be read; name config as secret/NAME or configmap/NAME", text)
		}
		asked[ref] = true
	}
	for _, path := range slices.Concat(s.files, s.changes) {
		if err := readAssumptions(path, fromFiles); err != nil {
			return nil, nil, err
		}
	}
	return asked, fromFiles, nil
}

// readAssumptions reads the file beside a manifest, or in a directory of manifests.
func readAssumptions(path string, into map[content.Object]string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // standard input has none, and what cannot be read was refused before
	}
	if !info.IsDir() {
		path = filepath.Dir(path)
	}
	file := filepath.Join(path, assumeFile)
	raw, err := os.ReadFile(file) //nolint:gosec // beside the manifests that a person has named
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &source.Error{File: file, Problem: "cannot be read: " + err.Error(), Action: "make it a readable file, or delete it"}
	}
	number := 0
	for line := range strings.Lines(string(raw)) {
		number++
		text, _, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		ref, ok := assumable(text)
		if !ok {
			return &source.Error{File: file, Line: number, Problem: fmt.Sprintf("%q cannot be read", text), Action: "name config as secret/NAME or configmap/NAME, one on a line"}
		}
		into[ref] = file
	}
	return nil
}

// assumable is the ConfigMap or the Secret that a text names.
func assumable(text string) (content.Object, bool) {
	ref, ok := command.NamedAs(strings.ToLower(text), string(content.ConfigMap), string(content.Secret))
	return content.Object{Kind: content.Kind(ref.Kind), Name: ref.Name}, ok
}
