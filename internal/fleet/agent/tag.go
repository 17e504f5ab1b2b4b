package agent

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// A module names a tag, a branch or a range, and its clusters are assigned the commit that this turned out
// to be on the first of them; on that one the commit takes the place of the tag once it
// is known. Nothing that runs changes by that: so what has succeeded stays so, while
// Flux sees the change, fetches the same by another name, and finds nothing to do.

// repoints is true if all that becomes different about what applies a sync is where the
// very thing is fetched from that it has applied with success. It may have been said
// since that it cannot be fetched from there.
func (d *decision) repoints(s *Sync, live applied, wanted *unstructured.Unstructured) bool {
	was := outcome.Find(&d.o.Assemblage.Status, &s.Assignment)
	return live != nil && was != nil && (was.State == v1alpha1.StateSucceeded || was.Reason == string(outcome.ReasonSourceNotReady)) &&
		Names(s.Source, was.Resolved) && live.has(was.Resolved) && isSameButSource(live, wanted)
}

// repoint points it to the commit once that has been fetched. Until then, and
// for ever if the commit is on no branch, it goes on with its tag: what runs needs no
// source that does not exist.
func (d *decision) repoint(s *Sync, fetched *Source, live applied, wanted *unstructured.Unstructured, changed bool) verdict {
	was := outcome.Find(&d.o.Assemblage.Status, &s.Assignment)
	if v, ok := fetch(fetched); !ok || changed {
		if fetched != nil && !changed && v.state == v1alpha1.StateWaiting {
			return waits(outcome.ReasonSourceNotReady, "keeps its tag; its commit cannot be used: %s", v.message)
		}
		return stays(was)
	}
	noteRepointed(wanted, live)
	d.write(Write{Act: Apply, Object: wanted, UID: live.GetUID()})
	if was.State != v1alpha1.StateSucceeded {
		return updating("handed to Flux")
	}
	return stays(was)
}

// isSameButSource is true if it would be what is wanted if it fetched
// from elsewhere.
func isSameButSource(live applied, wanted *unstructured.Unstructured) bool {
	same := wanted.DeepCopy()
	from := live.fetches()
	ref := map[string]any{"kind": from.Kind, "name": from.Name}
	if hash(same, unstructured.SetNestedMap(same.Object, ref, "spec", live.sourceField())) != nil {
		return false
	}
	return isApplied(same, live.content())
}

// noteRepointed notes on it the generation that it gets by being pointed
// elsewhere. Whatever else is changed about it gives it another one.
func noteRepointed(wanted *unstructured.Unstructured, live applied) {
	annotations := wanted.GetAnnotations()
	annotations[vocabulary.Repointed.Native] = strconv.FormatInt(live.GetGeneration()+1, 10)
	wanted.SetAnnotations(annotations)
}

func isRepointed(k applied) bool {
	return vocabulary.Repointed.Get(k.GetAnnotations()) == strconv.FormatInt(k.GetGeneration(), 10)
}

// stays is what was said of a success.
func stays(was *v1alpha1.SyncStatus) verdict {
	return verdict{state: was.State, reason: rollout.Reason(was.Reason), message: was.Message, resolved: was.Resolved}
}

// Names is true if a source names no tag, but the very thing that a revision in Flux's
// words is of.
func Names(s *v1alpha1.Source, revision string) bool {
	digest := Digest(revision)
	switch {
	case s == nil || digest == "":
		return false
	case s.Git != nil:
		return s.Git.Version.Revision != "" && strings.HasSuffix(digest, ":"+s.Git.Version.Revision)
	case s.OCI != nil:
		return s.OCI.Version.Digest == digest
	case s.Helm != nil:
		return s.Helm.Version == digest
	default:
		return false
	}
}

// Digest is the commit or the digest of a revision in Flux's words: "sha1:..." of
// "v1@sha1:...".
func Digest(revision string) string { return revision[strings.LastIndex(revision, "@")+1:] }
