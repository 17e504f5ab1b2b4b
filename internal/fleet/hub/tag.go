package hub

import (
	"crypto/sha1" //nolint:gosec // it is what Git uses
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
)

// A tag may be moved. What one stands for is found out by the first cluster that
// succeeds; it is written down before another cluster is assigned the revision, and all
// get that from then on: those that were assigned the tag at the same time as well.

// exact is what a revision says once it is known what its tag stands for: that very
// commit or digest, in place of the tag. It is the revision's own template where it
// names no tag, or one that is meant to move, and while nothing is known.
func exact(t *v1alpha1.TemplateSpec, resolved string) *v1alpha1.TemplateSpec {
	source, digest := t.Sync.Source, agent.Digest(resolved)
	_, sum, _ := strings.Cut(digest, ":")
	if source == nil || !isSum(sum) {
		return t
	}
	p := t.DeepCopy()
	switch {
	case source.Git != nil && source.Git.Version.Tag != "" && !source.Git.Version.Mutable:
		p.Sync.Source.Git.Version = v1alpha1.GitVersion{Revision: sum}
	case source.OCI != nil && source.OCI.Version.Tag != "" && !source.OCI.Version.Mutable:
		p.Sync.Source.OCI.Version = v1alpha1.OCIVersion{Digest: digest}
	default:
		return t
	}
	return p
}

// isSum is true of a SHA-1 or a SHA-256 in hexadecimal digits.
func isSum(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && (len(raw) == sha1.Size || len(raw) == sha256.Size)
}

// unresolved are for revisions of which a cluster has told for the first time what
// they turned out to be.
func (d *decision) unresolved() []Write {
	var writes []Write
	for i := range d.o.Revisions {
		r := &d.o.Revisions[i]
		if r.Resolved != "" || r.Deleting {
			continue
		}
		if i := slices.IndexFunc(d.o.Records, func(record Record) bool { return record.tells(r.Name) }); i >= 0 {
			writes = append(writes, Write{Act: Resolve, Revision: r.Name, UID: r.UID, Resolved: d.o.Records[i].Resolved})
		}
	}
	return writes
}

// tells is true of a report from which it is known what a revision turned out to be: of
// one that says what the revision does, and that nobody holds, as it may be something
// else for a while what runs there.
func (r *Record) tells(revision string) bool {
	return r.Revision == revision && r.succeeded() && r.Resolved != "" && !r.Edited && !r.Stale && r.Hold == nil
}

// resolve plans to write down what tags turned out to be, and nothing else: whoever is
// assigned such a revision from now on is to get that. It is false if all is known.
func (d *decision) resolve(p *Plan) bool {
	writes := d.unresolved()
	if len(writes) == 0 {
		return false
	}
	p.Writes = slices.DeleteFunc(writes, func(w Write) bool { return d.isPutOff(w.Revision) })
	p.Status = d.status()
	return true
}
