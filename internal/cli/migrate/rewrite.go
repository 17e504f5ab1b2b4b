package migrate

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func newRewrite() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "rewrite PATH...",
		Short: "Give the annotations of former controllers in manifests their names below spillway.dev",
		Long: "Rename annotations of wave, rollout-operator and Reloader in YAML files to the names below\n" +
			"spillway.dev that mean the same. Nothing else in a file changes: comments, order and white\n" +
			"space stay. What has no such name is named, and stays, as do labels and Pod templates,\n" +
			"whose change would roll Pods.\n" +
			"\n" +
			"Do it once nothing but Spillway acts on the objects.",
		Example: "  spillway migrate rewrite deploy/",
		Args:    command.AtLeast(1, "name files or directories"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, path := range args {
				if err := rewriteAll(cmd.OutOrStdout(), path, dryRun); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be renamed, and write nothing")
	return cmd
}

// rewriteAll rewrites a file, or all that end in .yaml and .yml below a directory.
func rewriteAll(w io.Writer, root string, dryRun bool) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error { //nolint:wrapcheck // it says what it could not read
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir() || path != root && !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)):
			return nil
		default:
			return rewriteFile(w, path, dryRun)
		}
	})
}

func rewriteFile(w io.Writer, path string, dryRun bool) error {
	text, err := os.ReadFile(path) //nolint:gosec // the user names it
	if err != nil {
		return fmt.Errorf("read a manifest: %w", err)
	}
	rewritten, said := rewrite(text)
	for _, s := range said {
		_, _ = fmt.Fprintf(w, "%s:%s\n", path, s)
	}
	if dryRun || bytes.Equal(text, rewritten) {
		return nil
	}
	if err := os.WriteFile(path, rewritten, 0o600); err != nil { //nolint:gosec // the user names it; a file that exists keeps its mode
		return fmt.Errorf("write a manifest: %w", err)
	}
	return nil
}

type renaming struct {
	line, column int
	from, to     string
	// of are the annotations that it is one of.
	of *yaml.Node
}

// rewrite renames annotations of the objects in the documents of a text. Said are lines with their number: what was renamed, and
// what has no name that means the same.
func rewrite(text []byte) (rewritten []byte, said []string) {
	var all []renaming
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			break // the end, or no YAML: a template, which is left alone
		}
		annotations(&document, func(of, key, value *yaml.Node) {
			to, known := native(key.Value, value.Value)
			switch {
			case to != "" && (fieldOf(of, to) != nil || slices.ContainsFunc(all, func(r renaming) bool { return r.of == of && r.to == to })):
				said = append(said, fmt.Sprintf("%d: %s stays: %s exists already; remove it", key.Line, key.Value, to))
			case to != "":
				all = append(all, renaming{key.Line, key.Column, key.Value, to, of})
				said = append(said, fmt.Sprintf("%d: %s → %s", key.Line, key.Value, to))
			case known:
				said = append(said, fmt.Sprintf("%d: %s stays: no name below spillway.dev means the same", key.Line, key.Value))
			}
		})
	}
	lines := bytes.Split(text, []byte("\n"))
	slices.SortFunc(all, func(a, b renaming) int { return b.column - a.column }) // from the right, so that columns stay
	for _, r := range all {
		line := lines[r.line-1]
		at := bytes.Index(line[min(len(line), r.column-1):], []byte(r.from))
		if at < 0 {
			continue
		}
		at += r.column - 1
		lines[r.line-1] = slices.Concat(line[:at], []byte(r.to), line[at+len(r.from):])
	}
	return bytes.Join(lines, []byte("\n")), said
}

// annotations calls a function with every annotation of the object of a document, and of those of a list. Labels are selected by
// others, and a Pod template that changes rolls its Pods: these are no part of it.
func annotations(n *yaml.Node, do func(of, key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		for _, child := range n.Content {
			annotations(child, do)
		}
		return
	}
	if items := fieldOf(n, "items"); items != nil {
		annotations(items, do)
	}
	of := fieldOf(fieldOf(n, "metadata"), "annotations")
	for i := 0; of != nil && i+1 < len(of.Content); i += 2 {
		do(of, of.Content[i], of.Content[i+1])
	}
}

// fieldOf is the value of a field, nil if there is none.
func fieldOf(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// native is the name below spillway.dev that means the same with such a value, empty if there is none. Known is true of what is an annotation
// of a former controller.
func native(name, value string) (to string, known bool) {
	switch name {
	case vocabulary.ReloaderAuto:
		if value == "true" {
			return vocabulary.ConfigTracked.Native, true
		}
	case vocabulary.ReloaderIgnore:
		if value == "true" {
			return vocabulary.Ignored.Native, true
		}
	case vocabulary.ReloaderExcludeConfigMap:
		return vocabulary.IgnoredConfigMaps.Native, true
	case vocabulary.ReloaderExcludeSecrets:
		return vocabulary.IgnoredSecrets.Native, true
	}
	for _, entry := range vocabulary.Entries() {
		if !entry.Written && entry.Place != vocabulary.Label && slices.Contains(entry.Aliases, name) {
			return entry.Native, true
		}
	}
	return "", vocabulary.IsOfReloader(name)
}
