// Package build writes everything of a release into a folder. It pushes nothing.
package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/hack/release/oci"
	"github.com/spillway-dev/spillway/hack/release/packaging"
	"github.com/spillway-dev/spillway/hack/release/program"
	"github.com/spillway-dev/spillway/hack/release/source"
)

// Images is the folder of the images.
const Images = "images"

// Options say what to build.
type Options struct {
	Source source.Source
	// Out is the folder to write to. What is in it is removed.
	Out string
	// Repository is where the image will be.
	Repository string
	// Platforms are those of the archives, and Images those of the image.
	Platforms, Images []program.Platform
	// FIPS also builds the variant of the image with certified cryptography.
	FIPS bool
	// Log receives what happens.
	Log io.Writer
}

// release is one that is being built.
type release struct {
	Options
	work  string
	files map[string][]byte
	host  string
}

// Run builds a release.
func Run(ctx context.Context, o Options) error {
	work, err := os.MkdirTemp("", "spillway-release-")
	if err != nil {
		return fmt.Errorf("make a folder to work in: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	r := &release{Options: o, work: work, files: map[string][]byte{}}
	images, digest, err := r.images(ctx)
	if err != nil {
		return err
	}
	archives, err := r.archives(ctx, digest)
	if err != nil {
		return err
	}
	if err := r.packages(archives); err != nil {
		return err
	}
	if err := r.deployments(ctx, digest); err != nil {
		return err
	}
	return r.write(images)
}

// images are made first, because the other programs install the image by its digest.
func (r *release) images(ctx context.Context) ([]oci.Release, string, error) {
	variants := []oci.Spec{{Source: r.Source, Tag: r.Source.Version, Repository: r.Repository}}
	if r.FIPS {
		variants = append(variants, oci.Spec{Source: r.Source, Tag: r.Source.Version + "-fips", Repository: r.Repository, FIPS: true})
	}
	var made []oci.Release
	for _, spec := range variants {
		for _, p := range r.Images {
			compiled, err := r.program(ctx, program.Build{Source: r.Source, Platform: p, FIPS: spec.FIPS})
			if err != nil {
				return nil, "", err
			}
			spec.Programs = append(spec.Programs, compiled)
		}
		image, err := spec.Make()
		if err != nil {
			return nil, "", fmt.Errorf("image %s: %w", spec.Tag, err)
		}
		made = append(made, image)
		r.lists(spec)
	}
	digest, err := made[0].Index.Digest()
	if err != nil {
		return nil, "", fmt.Errorf("digest of the image: %w", err)
	}
	_, _ = fmt.Fprintf(r.Log, "image %s@%s\n", r.Repository, digest)
	return made, digest.String(), nil
}

// lists writes what is linked into the programs of an image beside the archives, for who
// has no tool to read it from a registry.
func (r *release) lists(spec oci.Spec) {
	for _, p := range spec.Programs {
		list, err := spec.SBOM(p)
		if err == nil { // it was made for the image a moment ago
			r.files[fmt.Sprintf("spillway_%s_%s_%s.cdx.json", spec.Tag, p.Platform.OS, p.Platform.Arch)] = list
		}
	}
}

func (r *release) program(ctx context.Context, b program.Build) (oci.Program, error) {
	_, _ = fmt.Fprintf(r.Log, "compile for %s%s\n", b.Platform, map[bool]string{true: ", FIPS 140-3"}[b.FIPS])
	file := filepath.Join(r.work, "program")
	if err := b.Compile(ctx, file); err != nil {
		return oci.Program{}, err
	}
	content, err := os.ReadFile(file) //nolint:gosec // a folder of our own
	if err != nil {
		return oci.Program{}, fmt.Errorf("read the program: %w", err)
	}
	licenses, err := b.Licenses(ctx)
	if err != nil {
		return oci.Program{}, fmt.Errorf("program for %s: %w", b.Platform, err)
	}
	return oci.Program{Platform: b.Platform, Content: content, Licenses: licenses}, nil
}

func (r *release) archives(ctx context.Context, digest string) ([]packaging.Archive, error) {
	beside, err := r.beside(ctx)
	if err != nil {
		return nil, err
	}
	var archives []packaging.Archive
	for _, p := range r.Platforms {
		compiled, err := r.program(ctx, program.Build{Source: r.Source, Platform: p, Digest: digest})
		if err != nil {
			return nil, err
		}
		files := append([]program.File{
			{Name: p.File(), Content: compiled.Content, Program: true},
			{Name: "THIRD_PARTY_LICENSES.txt", Content: compiled.Licenses},
		}, beside...)
		pack := program.TarGz
		if p.OS == "windows" {
			pack = program.Zip
		}
		packed, err := pack(files, r.Source.Date)
		if err != nil {
			return nil, err
		}
		a := packaging.Archive{Platform: p, Name: packaging.ArchiveName(r.Source, p), SHA256: packaging.Sum(packed)}
		r.files[a.Name] = packed
		archives = append(archives, a)
	}
	return archives, nil
}

// beside are the files that every archive has: the license, the man pages, and the
// completions, which the program itself prints.
func (r *release) beside(ctx context.Context) ([]program.File, error) {
	host := program.Build{Source: r.Source, Platform: program.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}}
	r.host = filepath.Join(r.work, "host-"+host.Platform.File())
	if err := host.Compile(ctx, r.host); err != nil {
		return nil, err
	}
	names := []string{"LICENSE", "README.md"}
	pages, err := filepath.Glob(filepath.Join(r.Source.Root, "docs", "man", "*.1"))
	if err != nil {
		return nil, fmt.Errorf("look for man pages: %w", err)
	}
	slices.Sort(pages)
	files := make([]program.File, 0, len(names)+len(pages))
	for _, name := range names {
		files = append(files, program.File{Name: name})
	}
	for _, page := range pages {
		files = append(files, program.File{Name: "man/" + filepath.Base(page)})
	}
	for i := range files {
		from := files[i].Name
		if filepath.Dir(from) == "man" {
			from = "docs/" + from
		}
		if files[i].Content, err = os.ReadFile(filepath.Join(r.Source.Root, from)); err != nil { //nolint:gosec // of this repository
			return nil, fmt.Errorf("read %s: %w", from, err)
		}
	}
	for _, c := range [][2]string{{"bash", "spillway.bash"}, {"zsh", "_spillway"}, {"fish", "spillway.fish"}, {"powershell", "spillway.ps1"}, {"kubectl", "kubectl_complete-spillway"}} {
		script, err := r.run(ctx, "completion", c[0])
		if err != nil {
			return nil, err
		}
		files = append(files, program.File{Name: "completions/" + c[1], Content: script, Program: c[0] == "kubectl"})
	}
	return files, nil
}

// run runs the program that was compiled for this machine.
func (r *release) run(ctx context.Context, args ...string) ([]byte, error) {
	return r.runWith(ctx, "", args...)
}

// runWith is [release.run] with an input.
func (r *release) runWith(ctx context.Context, input string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, r.host, args...) //nolint:gosec // what was just compiled
	cmd.Stdin = strings.NewReader(input)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("spillway %v: %w: %s", args, err, failed.Bytes())
	}
	return out, nil
}

func (r *release) packages(archives []packaging.Archive) error {
	for name, write := range map[string]func(source.Source, []packaging.Archive) ([]byte, error){
		"krew.yaml": packaging.Krew, "spillway.rb": packaging.Formula,
	} {
		content, err := write(r.Source, archives)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.files[name] = content
	}
	return nil
}

// write writes the files once all of them are made.
func (r *release) write(images []oci.Release) error {
	if err := os.RemoveAll(r.Out); err != nil {
		return fmt.Errorf("remove the former release: %w", err)
	}
	if err := os.MkdirAll(r.Out, 0o755); err != nil { //nolint:gosec // it is to be published
		return fmt.Errorf("make the folder of the release: %w", err)
	}
	if err := oci.WriteLayout(filepath.Join(r.Out, Images), images); err != nil {
		return err
	}
	// From this file everything in the images follows by digests.
	root, err := os.ReadFile(filepath.Join(r.Out, Images, "index.json"))
	if err != nil {
		return fmt.Errorf("read the images: %w", err)
	}
	sums := maps.Clone(r.files)
	sums[Images+"/index.json"] = root
	r.files["checksums.txt"] = packaging.Checksums(sums)
	for name, content := range r.files {
		if err := os.WriteFile(filepath.Join(r.Out, name), content, 0o644); err != nil { //nolint:gosec // the same
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
