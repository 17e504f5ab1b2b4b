// Package packaging writes what package managers read, from the checksums of the archives.
package packaging

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/spillway-dev/spillway/hack/release/program"
	"github.com/spillway-dev/spillway/hack/release/source"
)

// Archive is a file of a release for a platform.
type Archive struct {
	Platform program.Platform
	Name     string
	SHA256   string
}

// Sum is the checksum of a file.
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// ArchiveName is the name of the archive for a platform.
func ArchiveName(s source.Source, p program.Platform) string {
	end := ".tar.gz"
	if p.OS == "windows" {
		end = ".zip"
	}
	return strings.Join([]string{"spillway", s.Version, p.OS, p.Arch}, "_") + end
}

// Checksums is what sha256sum --check reads.
func Checksums(files map[string][]byte) []byte {
	lines := make([]string, 0, len(files))
	for name, content := range files {
		lines = append(lines, Sum(content)+"  "+name+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	return []byte(strings.Join(lines, ""))
}

// Downloads is where the files of a release are.
const Downloads = "https://github.com/spillway-dev/spillway/releases/download/"

const krew = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: spillway
spec:
  version: {{.Source.Version}}
  homepage: https://github.com/spillway-dev/spillway
  shortDescription: Show and control rollouts of Spillway
  description: |
    Spillway rolls out changes of config, of StatefulSets in several zones, of
    applications and of fleets of clusters in a safe order. This plugin shows
    the state of rollouts, why each waits, and what a change would do; it
    pauses, resumes and retries them, and installs Spillway.
  platforms:
{{- range .Archives}}
  - selector:
      matchLabels:
        os: {{.Platform.OS}}
        arch: {{.Platform.Arch}}
    uri: {{$.Downloads}}{{$.Source.Version}}/{{.Name}}
    sha256: "{{.SHA256}}"
    bin: {{.Platform.File}}
    files:
    - from: {{.Platform.File}}
      to: .
    - from: LICENSE
      to: .
    - from: THIRD_PARTY_LICENSES.txt
      to: .
{{- end}}
`

// Krew is the manifest by which kubectl krew installs the plugin.
func Krew(s source.Source, archives []Archive) ([]byte, error) {
	return render(krew, s, archives)
}

const formula = `class Spillway < Formula
  desc "Controlled releases for Kubernetes"
  homepage "https://github.com/spillway-dev/spillway"
  version "{{.Source.Plain}}"
  license "Apache-2.0"
{{range $os := .Systems}}
  on_{{if eq $os "darwin"}}macos{{else}}{{$os}}{{end}} do
{{- range $.Archives}}{{if eq .Platform.OS $os}}
    on_{{if eq .Platform.Arch "arm64"}}arm{{else}}intel{{end}} do
      url "{{$.Downloads}}{{$.Source.Version}}/{{.Name}}"
      sha256 "{{.SHA256}}"
    end
{{- end}}{{end}}
  end
{{end}}
  def install
    bin.install "spillway"
    bin.install_symlink bin/"spillway" => "kubectl-spillway"
    bash_completion.install "completions/spillway.bash" => "spillway"
    zsh_completion.install "completions/_spillway"
    fish_completion.install "completions/spillway.fish"
    man1.install Dir["man/*.1"]
  end

  test do
    assert_match "spillway {{.Source.Version}}", shell_output("#{bin}/spillway version")
  end
end
`

// Formula is the formula of Homebrew.
func Formula(s source.Source, archives []Archive) ([]byte, error) {
	return render(formula, s, archives)
}

func render(text string, s source.Source, archives []Archive) ([]byte, error) {
	var systems []string
	for _, a := range archives {
		if os := a.Platform.OS; os != "windows" && !slices.Contains(systems, os) {
			systems = append(systems, os)
		}
	}
	parsed, err := template.New("").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	var b bytes.Buffer
	err = parsed.Execute(&b, map[string]any{"Source": s, "Archives": archives, "Systems": systems, "Downloads": Downloads})
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return b.Bytes(), nil
}
