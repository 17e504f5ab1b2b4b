package certificate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
)

// What the tests on the control plane use.
const (
	Settle     = settle
	LeafLife   = leafLife
	KeyLeaf    = keyLeaf
	KeyLeafKey = keyLeafKey
	KeyBundle  = keyBundle
	KeyPaths   = keyPaths
)

// MaterialDue is a good certificate of which the leaf and the CA are due at
// these moments.
func MaterialDue(leafDue, authorityDue time.Time, hosts []string) (map[string][]byte, error) {
	m, err := material{}.newAuthority(authorityDue.Add(skew - (authorityLife+skew)*2/3))
	if err != nil {
		return nil, err
	}
	return m.newLeaf(leafDue.Add(skew-(leafLife+skew)*2/3), hosts)
}

// Inject writes a caBundle into a mutating configuration that was seen.
func Inject(ctx context.Context, w client.Writer, name, resourceVersion string, before, bundle []byte) error {
	return actor{writer: w}.inject(ctx, &injection{bundle: bundle, configuration: configuration{
		kind: admission.MutatingKind, name: name, resourceVersion: resourceVersion, hooks: []hook{{bundle: before}},
	}})
}

// KeepMaterial writes a Secret that was seen.
func KeepMaterial(ctx context.Context, w client.Writer, secret *corev1.Secret, o admission.Options) error {
	return actor{writer: w, options: o.WithDefaults()}.keepMaterial(ctx, secret, material{KeyLeaf: []byte("x"), KeyLeafKey: []byte("y")})
}

// IsConflict is true for writes that were refused as a conflict.
func IsConflict(err error) bool { return isConflict(err) }
