// Package identity derives the ids of traces and spans from what a status says, so that
// managers, Notifiers and commands all have the same without storing it.
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// OTLP's lengths of the ids of traces and spans, in bytes.
const (
	traceLength = 16
	spanLength  = 8
)

// Trace is the id of the trace of a rollout: which object it is of, which of its rollouts,
// and when it began.
func Trace(object types.UID, rollout string, startedAt time.Time) string {
	return digest(traceLength, string(object), rollout, strconv.FormatInt(startedAt.UnixMicro(), 10))
}

// Release is the id of the trace of a release of a policy, empty of one whose beginning is
// not recorded.
func Release(policy types.UID, r *v1alpha1.ConfigRelease) string {
	if r.StartedAt == nil {
		return ""
	}
	return Trace(policy, r.Namespace+"/"+r.Object, r.StartedAt.Time)
}

// PastRelease is the id of the trace of a release that is over.
func PastRelease(policy types.UID, r *v1alpha1.PastConfigRelease) string {
	return Trace(policy, r.Namespace+"/"+r.Object, r.StartedAt.Time)
}

// Span is the id of a span, by its path in its trace.
func Span(trace string, path ...string) string {
	return digest(spanLength, append([]string{trace}, path...)...)
}

func digest(length int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:length])
}
