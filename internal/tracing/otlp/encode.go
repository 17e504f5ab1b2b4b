package otlp

import (
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spillway-dev/spillway/internal/tracing/span"
)

const (
	kindInternal = 1
	statusError  = 2
	isSampled    = 1
)

// message is a message of protocol buffers, with the numbers of fields that
// opentelemetry/proto/trace/v1/trace.proto has.
type message []byte

func (m *message) bytes(field protowire.Number, value []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), value)
}

func (m *message) text(field protowire.Number, value string) {
	if value != "" {
		m.bytes(field, []byte(value))
	}
}

func (m *message) number(field protowire.Number, value uint64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), value)
}

func (m *message) moment(field protowire.Number, at time.Time) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), uint64(at.UnixNano()))
}

func (m *message) id(field protowire.Number, digits string) {
	if raw, err := hex.DecodeString(digits); err == nil && len(raw) > 0 {
		m.bytes(field, raw)
	}
}

// attributes are those that have a value, in order.
func (m *message) attributes(field protowire.Number, all map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] == "" {
			continue
		}
		var value, pair message
		value.text(1, all[name])
		pair.text(1, name)
		pair.bytes(2, value)
		m.bytes(field, pair)
	}
}

// encode is an ExportTraceServiceRequest.
func encode(resource map[string]string, spans []span.Span) []byte {
	var from, scope, ofScope, ofResource, request message
	from.attributes(1, resource)
	scope.text(1, "spillway.dev")
	ofScope.bytes(1, scope)
	for i := range spans {
		ofScope.bytes(2, encodeSpan(&spans[i]))
	}
	ofResource.bytes(1, from)
	ofResource.bytes(2, ofScope)
	request.bytes(1, ofResource)
	return request
}

func encodeSpan(s *span.Span) message {
	var m message
	m.id(1, s.Trace)
	m.id(2, s.ID)
	m.id(4, s.Parent)
	m.text(5, s.Title())
	m.number(6, kindInternal)
	m.moment(7, s.Start)
	m.moment(8, s.End)
	m.attributes(9, map[string]string{
		"spillway.ring": s.Object.Ring, "spillway.kind": s.Object.Kind, "spillway.name": s.Object.Name, "spillway.rollout": s.Object.Rollout,
		"k8s.namespace.name": s.Object.Namespace, "spillway.unit": s.Kind, "spillway.outcome": s.Outcome,
	})
	if reason := s.Reason(); reason != "" {
		var event message
		event.moment(1, s.End)
		event.text(2, reason)
		event.attributes(3, map[string]string{"message": s.Message})
		m.bytes(11, event)
	}
	if s.IsError() {
		var status message
		status.text(2, s.Message)
		status.number(3, statusError)
		m.bytes(15, status)
	}
	return append(protowire.AppendTag(m, 16, protowire.Fixed32Type), isSampled, 0, 0, 0)
}
