package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// The projects that the programs are of.
const (
	kubernetes = "kubernetes"
	etcd       = "etcd"
	kwok       = "kwok"
)

// platform is one that the projects publish all programs for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are those that can be pinned: Kubernetes publishes servers for no others.
func platforms() []platform { return []platform{{"linux", "amd64"}, {"linux", "arm64"}} }

// program is one of the control plane: its project, the module whose version it has, and the package
// that it is built from.
type program struct{ name, project, module, pkg string }

func programs() []program {
	const of = "k8s.io/kubernetes"
	all := []program{{"etcd", etcd, "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"}}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		all = append(all, program{name, kubernetes, of, of + "/cmd/" + name})
	}
	return append(all, program{"kwok", kwok, "sigs.k8s.io/kwok", "sigs.k8s.io/kwok/cmd/kwok"})
}

// sources are where the projects publish.
type sources struct{ kubernetes, github string }

// published are the projects' own, or a mirror of both.
func published() sources {
	if mirror := os.Getenv("SPILLWAY_MIRROR"); mirror != "" {
		return sources{mirror, mirror}
	}
	return sources{"https://dl.k8s.io", "https://github.com"}
}

// file is the address of a program, and the name within it where it is an archive.
func (s sources) file(of program, version string, p platform) (address, member string) {
	switch of.project {
	case etcd:
		name := fmt.Sprintf("etcd-%s-%s-%s", version, p.os, p.arch)
		return fmt.Sprintf("%s/etcd-io/etcd/releases/download/%s/%s.tar.gz", s.github, version, name), name + "/etcd"
	case kwok:
		return fmt.Sprintf("%s/kubernetes-sigs/kwok/releases/download/%s/kwok-%s-%s", s.github, version, p.os, p.arch), ""
	default:
		return fmt.Sprintf("%s/release/%s/bin/%s/%s/%s", s.kubernetes, version, p.os, p.arch, of.name), ""
	}
}

// checksums is where a project publishes the checksum of a file, empty if nowhere.
func (s sources) checksums(of program, version, address string) string {
	switch of.project {
	case etcd:
		return fmt.Sprintf("%s/etcd-io/etcd/releases/download/%s/SHA256SUMS", s.github, version)
	case kwok:
		return ""
	default:
		return address + ".sha256"
	}
}

// pin is the checksum of the file that a project publishes for a platform.
type pin struct {
	program
	version  string
	platform platform
	sha256   string
}

const heading = "# What hack/controlplane may download: program, version, platform, SHA-256 of the file.\n" +
	"# Written by make pin. A program that is missing here is built from Go modules.\n"

var isSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parsePins reads the table of checksums.
func parsePins(raw []byte) ([]pin, error) {
	var pins []pin
	n := 0
	for line := range strings.Lines(string(raw)) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) != 4 || !isSum.MatchString(fields[3]) {
			return nil, fmt.Errorf("downloads.txt: line %d: must be a program, a version, a platform and a SHA-256", n)
		}
		known := slices.IndexFunc(programs(), func(p program) bool { return p.name == fields[0] })
		on := slices.IndexFunc(platforms(), func(p platform) bool { return p.String() == fields[2] })
		if known < 0 || on < 0 {
			return nil, fmt.Errorf("downloads.txt: line %d: %s for %s is none of the control plane", n, fields[0], fields[2])
		}
		pins = append(pins, pin{programs()[known], fields[1], platforms()[on], fields[3]})
	}
	return pins, nil
}

// pins are those of the table.
func (f *finder) pins() ([]pin, error) {
	raw, err := os.ReadFile(f.table)
	if err != nil {
		return nil, fmt.Errorf("checksums of the control plane: %w", err)
	}
	return parsePins(raw)
}

// pinOf is the pin of a program for a platform, nil if there is none.
func pinOf(pins []pin, m *made, on platform) *pin {
	i := slices.IndexFunc(pins, func(p pin) bool { return p.program == m.program && p.platform == on && p.version == m.version })
	if i < 0 {
		return nil
	}
	return &pins[i]
}

// pin downloads what can be pinned, and writes the table.
func (f *finder) pin(ctx context.Context) error {
	all, err := f.programs()
	if err != nil {
		return err
	}
	table := bytes.NewBufferString(heading)
	for _, on := range platforms() {
		for _, m := range all {
			sum, err := f.measure(ctx, m.program, m.version, on)
			if err != nil {
				return fmt.Errorf("%w; downloads.txt is as it was", err)
			}
			_, _ = fmt.Fprintf(table, "%s %s %s %s\n", m.name, m.version, on, sum)
		}
	}
	if err := os.WriteFile(f.table, table.Bytes(), 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("write the checksums: %w", err)
	}
	return nil
}

// measure returns the checksum of a file, which is that which its project publishes.
func (f *finder) measure(ctx context.Context, of program, version string, on platform) (string, error) {
	address, _ := f.sources.file(of, version, on)
	f.tellf("%s", address)
	sum, err := sumOf(ctx, address)
	if err != nil {
		return "", err
	}
	from := f.sources.checksums(of, version, address)
	if from == "" {
		f.tellf("  %s: compare it with the page of the release, its project publishes no checksums", sum)
		return sum, nil
	}
	var said bytes.Buffer
	if err := get(ctx, from, &said, nil); err != nil {
		return "", err
	}
	if !slices.Contains(strings.Fields(said.String()), sum) {
		return "", errors.New(address + " has SHA-256 " + sum + ", which " + from + " does not say")
	}
	return sum, nil
}
