package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
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
	return bounded(module, nameLength) + "-" + hash(kind, module, normal(template))
}

// normal is the template without what makes no difference.
func normal(template v1alpha1.TemplateSpec) v1alpha1.TemplateSpec {
	t := *template.DeepCopy()
	if t.Sync.Package == nil || t.Sync.Package.Kustomize == nil {
		t.Sync.Package = &v1alpha1.Package{Kustomize: &v1alpha1.Kustomize{}}
	}
	if t.Sync.Package.Kustomize.Path == "." {
		t.Sync.Package.Kustomize.Path = ""
	}
	return t
}

// hash is over the JSON of its parts, which is the same for the same values.
func hash(parts ...any) string {
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

// GateName is the name of the RolloutGate for a gate of a stage.
func GateName(revision, stage string, g v1alpha1.Gate) string {
	return revision + "-" + stage + "-" + hash(stage, g.Name, gateTime(g))
}

func gateTime(g v1alpha1.Gate) v1alpha1.GateTime {
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
	return bounded(owner, fieldOwnerLength-1-hashLength) + "-" + hash(module)
}
