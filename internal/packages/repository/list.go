package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/nearest"
)

// Repository is one that the user has named.
type Repository struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// List is the user's file of repositories, the same that KUDO has.
type List struct {
	APIVersion string `json:"apiVersion"`
	// Context is the name of the repository that is used where none is named.
	Context      string       `json:"context"`
	Repositories []Repository `json:"repositories"`
}

// listFile is where the list is, below the user's directory of KUDO.
const listFile = "repository/repositories.yaml"

// Open reads the list; it is empty if there is no file.
func Open(home string) (*List, error) {
	l := &List{APIVersion: indexVersion}
	path := filepath.Join(home, listFile)
	raw, err := os.ReadFile(path) //nolint:gosec // the user's own file
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of repositories: %w", err)
	}
	if err := yaml.Unmarshal(raw, l); err != nil {
		return nil, fmt.Errorf("%s: invalid YAML: %w", path, err)
	}
	return l, nil
}

// Save writes the list: all of it, or none.
func (l *List) Save(home string) error {
	raw, err := yaml.Marshal(l)
	if err != nil {
		return fmt.Errorf("write the list of repositories: %w", err)
	}
	path := filepath.Join(home, listFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // it has no secrets
		return fmt.Errorf("write the list of repositories: %w", err)
	}
	return Replace(path, raw)
}

// Replace writes a file beside its place first, so that there is never half of one.
func Replace(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".spillway-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Get is the repository of a name, or of the context if none is named.
func (l *List) Get(name string) (Repository, error) {
	if name == "" {
		name = l.Context
	}
	if len(l.Repositories) == 0 || name == "" {
		return Repository{}, errors.New("no repository is configured; add one with: spillway package repo add NAME URL")
	}
	if i := l.index(name); i >= 0 {
		return l.Repositories[i], nil
	}
	var known []string
	for _, r := range l.Repositories {
		known = append(known, r.Name)
	}
	if near := nearest.Meant(name, known); near != "" {
		return Repository{}, fmt.Errorf("repository %s not found; did you mean %s?", name, near)
	}
	return Repository{}, fmt.Errorf("repository %s not found; see all with: spillway package repo list", name)
}

func (l *List) index(name string) int {
	return slices.IndexFunc(l.Repositories, func(r Repository) bool { return r.Name == name })
}

// Add adds a repository. The first one becomes the context.
func (l *List) Add(r Repository) error {
	if _, err := parse(r.URL); err != nil {
		return err
	}
	if l.index(r.Name) >= 0 {
		return fmt.Errorf("repository %s exists; choose another name, or remove it first with: spillway package repo remove %s", r.Name, r.Name)
	}
	l.Repositories = append(l.Repositories, r)
	if l.Context == "" {
		l.Context = r.Name
	}
	return nil
}

// Remove removes a repository. If it was the context, there is none afterwards.
func (l *List) Remove(name string) error {
	if _, err := l.Get(name); err != nil {
		return err
	}
	i := l.index(name)
	l.Repositories = slices.Delete(l.Repositories, i, i+1)
	if l.Context == name {
		l.Context = ""
	}
	return nil
}

// SetContext sets the repository that is used where none is named.
func (l *List) SetContext(name string) error {
	if _, err := l.Get(name); err != nil {
		return err
	}
	l.Context = name
	return nil
}
