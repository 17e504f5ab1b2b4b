package model

import (
	"crypto/sha1" //nolint:gosec // it is what Git uses
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/kube"
)

const (
	// hashLength is how many characters of a hash tell revisions apart.
	hashLength = 10
	// nameLength is how much of a module's name is in that of its revisions, so
	// that these may be labels.
	nameLength = 63 - 1 - hashLength
	// fieldOwnerLength is how long the name of a field owner may be.
	fieldOwnerLength = 128
)

// RevisionName is the name of the ModuleRevision for what a module says. It
// follows from that alone: who goes back to an older template goes back to the
// older revision.
func RevisionName(kind, module string, template v1alpha1.TemplateSpec) string {
	return bounded(module, nameLength) + "-" + Hash(kind, module, normal(template))
}

// normal is the template without what makes no difference.
func normal(template v1alpha1.TemplateSpec) v1alpha1.TemplateSpec {
	t := *template.DeepCopy()
	if t.Sync.Package == nil {
		t.Sync.Package = &v1alpha1.Package{}
	}
	p := t.Sync.Package
	if p.Kustomize == nil && p.Helm == nil {
		p.Kustomize = &v1alpha1.Kustomize{}
	}
	if p.Kustomize != nil && p.Kustomize.Path == "." {
		p.Kustomize.Path = ""
	}
	if p.Helm != nil && p.Helm.Path == "." {
		p.Helm.Path = ""
	}
	return t
}

// GateName is the name of the RolloutGate for a gate of a stage.
func GateName(revision, stage string, g v1alpha1.Gate) string {
	return revision + "-" + stage + "-" + Hash(stage, g.Name, GateTime(g))
}

// GateTime returns when a gate is decided: after its stage if the module says nothing.
func GateTime(g v1alpha1.Gate) v1alpha1.GateTime {
	if g.When == "" {
		return v1alpha1.After
	}
	return g.When
}

// FieldOwner is the name under which a module's part of an assemblage stands in
// managedFields.
func FieldOwner(module string) string {
	owner := kube.ModuleOwner + module
	if len(owner) <= fieldOwnerLength {
		return owner
	}
	return bounded(owner, fieldOwnerLength-1-hashLength) + "-" + Hash(module)
}

// Hash is over the JSON of its parts, which is the same for the same values.
func Hash(parts ...any) string {
	raw, err := json.Marshal(parts)
	if err != nil {
		raw = []byte(err.Error()) // strings, numbers and maps of these can always be encoded
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:hashLength]
}

// bounded is the beginning of a name that may go on with a dash.
func bounded(name string, length int) string {
	return strings.TrimRight(name[:min(len(name), length)], "-.")
}

// A tag may be moved. What one stands for is found out by the first cluster that
// succeeds; it is written down before another cluster is assigned the revision, and all
// get that from then on: those that were assigned the tag at the same time as well.

// Pinned is what a revision says once it is known what its tag, branch or range stands for: that
// very commit, digest or version, in its place. It is the revision's own template where it
// names an exact one, or what is meant to move, and while nothing is known.
func Pinned(t *v1alpha1.TemplateSpec, resolved string) *v1alpha1.TemplateSpec {
	source, digest := t.Sync.Source, agent.Digest(resolved)
	_, sum, _ := strings.Cut(digest, ":")
	if source == nil || !source.Moves() || source.Helm == nil && !isSum(sum) || digest == "" {
		return t
	}
	p := t.DeepCopy()
	switch {
	case source.Git != nil:
		p.Sync.Source.Git.Version = v1alpha1.GitVersion{Revision: sum}
	case source.OCI != nil:
		p.Sync.Source.OCI.Version = v1alpha1.OCIVersion{Digest: digest}
	default:
		p.Sync.Source.Helm.Version = digest
	}
	if p.Sync.Source.Moves() { // a cluster has reported another range
		return t
	}
	return p
}

// isSum is true of a SHA-1 or a SHA-256 in hexadecimal digits.
func isSum(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && (len(raw) == sha1.Size || len(raw) == sha256.Size)
}
