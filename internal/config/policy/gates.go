package policy

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/gates/ask"
)

// Lengths in what a gate is about. The digest has the UID of its object as its key, so that a
// part of it and of the name are enough to tell contents apart.
const (
	revisionName   = 200
	revisionDigest = 16
)

// Revision is what a gate calls a content: "secret/db@9676b5e0aa3f21c8".
func Revision(r content.Release) string {
	name := r.Object.Name
	return strings.ToLower(string(r.Object.Kind)) + "/" + name[:min(len(name), revisionName)] + "@" + r.Digest[:min(len(r.Digest), revisionDigest)]
}

// UID is that of the object.
func (p *Policy) UID() types.UID { return p.object.GetUID() }

// Questions are the gates of a stage of a release.
func (p *Policy) Questions(s *Stage, r content.Release) []ask.Question {
	target := ask.Target{UID: p.UID(), TargetReference: v1alpha1.TargetReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: p.Kind, Name: p.Name}}
	questions := make([]ask.Question, len(s.Gates))
	for i, gate := range s.Gates {
		questions[i] = ask.Question{Target: target, Stage: s.Name, Revision: Revision(r), Gate: gate.GateReference, When: ask.WhenOf(gate.When)}
	}
	return questions
}

// AddGates lets RolloutGates be read from now on.
func (k *Kinds) AddGates() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gates = true
}

func (k *Kinds) hasGates() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gates
}

// Gates are the RolloutGates of policies, by the UID of these. Known is false where they cannot
// be read: then all are pending, and none is created.
func (r *Reader) Gates(ctx context.Context, set Set) (gates map[types.UID]ask.Gates, known bool, err error) {
	if r == nil || !r.lenient && !r.kinds.hasGates() {
		return nil, false, nil
	}
	gates = map[types.UID]ask.Gates{}
	lists := map[string]*v1alpha1.RolloutGateList{}
	for _, p := range set {
		if p.Namespace == "" { // it has none
			continue
		}
		list := lists[p.Namespace]
		if list == nil {
			list = &v1alpha1.RolloutGateList{}
			err := r.reader.List(ctx, list, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy)
			if r.lenient && err != nil && isAbsent(err) {
				return nil, false, nil
			}
			if err != nil {
				return nil, false, fmt.Errorf("list RolloutGates: %w", err)
			}
			lists[p.Namespace] = list
		}
		gates[p.UID()] = ask.Of(list.Items, p.UID())
	}
	return gates, true, nil
}
