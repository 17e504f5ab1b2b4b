package choice

import "github.com/spillway-dev/spillway/api/kudo/v1beta1"

// Change is what is wanted and what exists. [Choose] makes a plan of it.
type Change struct {
	// Namespace is the Instance's.
	Namespace string
	Want      *v1beta1.InstanceSpec
	// Applied is the spec that was last applied, nil if none ever was.
	Applied *v1beta1.InstanceSpec
	// Attempted is a spec that may be partly applied, because the plan for it did not
	// succeed; nil if there is none.
	Attempted *v1beta1.InstanceSpec
	// New is the OperatorVersion that is wanted, Old the one that was applied, nil
	// if it no longer exists.
	New, Old *v1beta1.OperatorVersionSpec
	// AppliedWith and AttemptedWith are the contents of OperatorVersions with which Applied
	// and Attempted were, nil if they no longer exist. Their defaults are the values of
	// parameters that are not set there.
	AppliedWith, AttemptedWith *v1beta1.OperatorVersionSpec
	// Immutable are the values that must not change.
	Immutable map[string]string
}

// ReplacementOf is the change that would replace the execution that is running:
// what that has touched may be partly applied.
func ReplacementOf(i *v1beta1.Instance, s *v1beta1.InstanceStatus, version, former *Version) Change {
	c := ChangeOf(i, s, version, former)
	if e := s.Running(); e != nil && e.Advances && e.Touched {
		c.Attempted, c.AttemptedWith = &e.Spec, contentOf(e.ContentHash, version, former)
	}
	return c
}

// ChangeOf is the change that the spec of an Instance asks for, given a status.
// former is the OperatorVersion that was last applied, nil if it no longer exists.
func ChangeOf(i *v1beta1.Instance, s *v1beta1.InstanceStatus, version, former *Version) Change {
	c := Change{
		Namespace: i.Namespace, Want: &i.Spec,
		Applied: s.LastAppliedInstanceSpec, New: version.Spec, Immutable: s.ImmutableParameters,
	}
	if a := s.Attempted; a != nil && a.Touched {
		c.Attempted, c.AttemptedWith = &a.Spec, contentOf(a.ContentHash, version, former)
	}
	if former != nil {
		c.Old = former.Spec
	}
	c.AppliedWith = contentOf(s.LastAppliedContentHash, version, former)
	return c
}

// contentOf is the content with a hash, nil if none of the versions has it any more.
func contentOf(hash string, versions ...*Version) *v1beta1.OperatorVersionSpec {
	for _, v := range versions {
		if v != nil && hash != "" && v.Hash == hash {
			return v.Spec
		}
	}
	return nil
}

// IsUpgrade is true if another OperatorVersion is wanted than that of a spec.
func (c *Change) IsUpgrade(from *v1beta1.InstanceSpec) bool {
	return from != nil && !sameVersion(c.Namespace, from, c.Want)
}
