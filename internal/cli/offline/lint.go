package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/lint/rules"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/dependency"
	"github.com/spillway-dev/spillway/internal/packages/origin"
	"github.com/spillway-dev/spillway/internal/source"
)

type linting struct {
	files, exclude            []string
	namespace, output, failOn string
	kubeVersion               command.KubeVersion
	// reloads is true if the manager reads annotations of Reloader.
	reloads bool
	// origin says where packages are, if each file is to be one.
	origin *origin.Origin
}

const (
	// never is the bar that no finding reaches.
	never = "never"
	// outputSARIF is the form that code scanners read.
	outputSARIF = "sarif"
)

// NewLint returns the command lint.
func NewLint(env command.Environment) *cobra.Command {
	var l linting
	cmd := &cobra.Command{
		Use:   "lint [PATH]...",
		Short: "Find mistakes in manifests, before they reach a cluster",
		Long: "Find settings in manifests that are wrong, contradictory or without effect, with file,\n" +
			"line and fix. No cluster is needed. The exit code is 1 if there is an error.\n" +
			"\n" +
			"In a directory, what is not a manifest is skipped: files without apiVersion and kind, Helm\n" +
			"charts, Kustomize overlays, and what .gitignore, .spillwayignore or --exclude name.\n" +
			"Packages are checked as spillway package verify does.\n" +
			"\n" +
			"Each finding has a code. To ignore findings for an object, annotate it with\n" +
			"spillway.dev/lint-ignore and their codes. The page of SPW101:\n" +
			report.Guide + "#spw101",
		Example: "  spillway lint deploy/\n" +
			"  spillway lint . --exclude 'testdata/'\n" +
			"  kubectl kustomize overlays/prod | spillway lint -f - -n shop\n" +
			"  spillway lint deploy/ -o sarif > lint.sarif",
		RunE: func(cmd *cobra.Command, args []string) error {
			l.files = append(l.files, args...)
			return l.run(cmd, env)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&l.files, "filename", "f", nil, "a file, a directory, or - for standard input; may be given several times")
	flags.StringArrayVar(&l.exclude, "exclude", nil, "leave out what matches, as a line of .gitignore; may be given several times")
	flags.StringVarP(&l.namespace, "namespace", "n", "default", "the namespace of objects that name none")
	flags.BoolVar(&l.reloads, command.ReloaderAnnotations, false, "read the annotations of Reloader, as a manager with the flag")
	l.addForm(cmd)
	return cmd
}

// reloader has annotations of Reloader read, nil if they are not.
func (l *linting) reloader() *reloader.Options {
	if !l.reloads {
		return nil
	}
	return &reloader.Options{}
}

// addForm adds the flags about what is printed, and when the exit code is 1.
func (l *linting) addForm(cmd *cobra.Command) {
	flags := cmd.Flags()
	command.OutputFlag(cmd, &l.output, outputSARIF)
	flags.StringVar(&l.failOn, "fail-on", string(report.Error), `the lowest level at which the exit code is 1: "error", "warning", "note", or "never"`)
	l.kubeVersion.AddFlag(flags)
}

// read reads what is named, and the packages below the directories that are named. The error is
// about what cannot be read.
func (l *linting) read(ctx context.Context, stdin io.Reader, o source.Options) (documents []source.Document, unread error) {
	documents, manifests, unread := l.readPackages(ctx, l.files)
	if len(manifests) == 0 {
		return documents, unread
	}
	var below []string
	o.Own = func(directory string) bool {
		is := packages.IsPackage(directory)
		if is {
			below = append(below, directory)
		}
		return is
	}
	others, err := source.ReadTree(stdin, o, manifests...)
	packaged, _, errs := l.readPackages(ctx, below)
	return slices.Concat(documents, others, packaged), errors.Join(unread, err, errs)
}

// readPackages reads those paths that are packages, and returns the others. The error is
// about packages that cannot be read.
func (l *linting) readPackages(ctx context.Context, paths []string) (documents []source.Document, others []string, unread error) {
	for _, path := range paths {
		if l.origin == nil && (path == source.Stdin || !packages.IsPackage(path)) {
			others = append(others, path)
			continue
		}
		of, err := documentsOf(ctx, cmp.Or(l.origin, &origin.Origin{}), path)
		if err != nil {
			unread = errors.Join(unread, unreadable(path, err))
			continue
		}
		documents, unread = append(documents, of...), errors.Join(unread, lacking(ctx, path))
	}
	return documents, others, unread
}

// lacking is why a package in a directory can never be installed: a package beside it that it
// needs cannot be read, or needs it in turn. What it names otherwise is not looked up.
func lacking(ctx context.Context, path string) error {
	p, err := packages.Load(path) // another one, in which versions are pinned
	if info, failed := os.Stat(path); err != nil || failed != nil || !info.IsDir() {
		return nil //nolint:nilerr // it is no directory, or was said to be unreadable
	}
	_, err = dependency.Resolve(ctx, p, func(_ context.Context, needed dependency.Reference) (*packages.Package, error) {
		if !origin.IsPath(needed.Package) || strings.Contains(needed.Package, "://") {
			return nil, nil //nolint:nilnil // it is in a repository
		}
		return packages.Load(needed.Package)
	})
	if err == nil {
		return nil
	}
	return unreadable(path, err)
}

// unreadable is why a package cannot be read, as a mistake of the package.
func unreadable(name string, err error) error {
	if mistakes := source.Errors(err); len(mistakes) > 0 {
		return err
	}
	problem, action, _ := strings.Cut(err.Error(), "; ") // as all messages have it
	for _, before := range []string{name, ":", " "} {
		problem = strings.TrimPrefix(problem, before)
	}
	return &source.Error{File: name, Problem: problem, Action: action}
}

func documentsOf(ctx context.Context, from *origin.Origin, name string) ([]source.Document, error) {
	p, err := from.Load(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.Documents()
}

func (l *linting) run(cmd *cobra.Command, env command.Environment) error {
	if err := l.validate(); err != nil {
		return err
	}
	scheme, err := kube.NewScheme()
	if err != nil {
		return err
	}
	var skipped []source.Skipped
	leaveOut := func(s source.Skipped) { skipped = append(skipped, s) }
	notText := func(path string) { tellNotText(cmd.ErrOrStderr(), path) }
	documents, unread := l.read(cmd.Context(), cmd.InOrStdin(), source.Options{Exclude: l.exclude, Skip: leaveOut, NotText: notText})
	findings, err := lint.Lint(documents, unread, manifest.Options{Scheme: scheme, Namespace: l.namespace, Now: env.Now(), Minor: l.kubeVersion.Minor, Reloader: l.reloader()})
	if err != nil {
		return err
	}
	if err := l.show(cmd.OutOrStdout(), env.Lookup, findings, len(documents)); err != nil {
		return err
	}
	tellSkipped(cmd.ErrOrStderr(), skipped)
	return l.verdict(findings)
}

func (l *linting) validate() error {
	if len(l.files) == 0 {
		return errors.New("-f: name what to check: a file, a directory, or - for standard input")
	}
	if _, err := report.ParseLevel(l.failOn); err != nil && l.failOn != never {
		return fmt.Errorf("--fail-on: %q is not known; use error, warning, note or never", l.failOn)
	}
	for _, pattern := range l.exclude {
		if _, err := filepath.Match(pattern, ""); err != nil {
			return fmt.Errorf("--exclude: %q is no pattern; write it as a line of .gitignore, such as testdata/ or *_test.yaml", pattern)
		}
	}
	if l.origin != nil {
		return nil
	}
	return command.CheckNamespaces("namespace", l.namespace)
}

func (l *linting) show(w io.Writer, lookup func(string) (string, bool), findings []report.Finding, objects int) error {
	if l.output == outputSARIF {
		return showSARIF(w, findings, rules.All())
	}
	if findings == nil {
		findings = []report.Finding{}
	}
	return command.Show(w, l.output, findings, func(w io.Writer) {
		report.WriteText(w, findings, objects, display.StyleOf(w, lookup).Fold)
	})
}

func showSARIF(w io.Writer, findings []report.Finding, all []report.Rule) error {
	directory, _ := os.Getwd() // without it, paths stay as they are
	return command.Show(w, command.OutputJSON, report.ToSARIF(findings, all, command.CurrentVersion(), directory), nil)
}

// tellSkipped says what was left out: of what could be rendered, where and how, and of the
// rest how much.
func tellSkipped(w io.Writer, skipped []source.Skipped) {
	files := 0
	for _, s := range skipped {
		if s.Action == "" {
			files++
			continue
		}
		_, _ = fmt.Fprintf(w, "note: %s is %s, which is not rendered here: %s | spillway lint -\n", s.Path, s.Why, s.Action)
	}
	if files > 0 {
		_, _ = fmt.Fprintf(w, "note: %s without manifests left out\n", report.Plural(files, "file"))
	}
}

// tellNotText says that a file was left out that has the name of a manifest.
func tellNotText(w io.Writer, path string) {
	_, _ = fmt.Fprintf(w, "note: %s is not text, and was left out\n", path)
}

// verdict is the error that makes the exit code 1.
func (l *linting) verdict(findings []report.Finding) error {
	if l.failOn == never {
		return nil
	}
	for i := range findings {
		if findings[i].Level.AtLeast(report.Level(l.failOn)) {
			return command.ExitError{Err: errors.New(report.Summary(findings)), Code: 1, Said: l.output == ""}
		}
	}
	return nil
}
