package dashboard

// NewSharedWith returns what looks have in common where several servers serve the same pages: a
// form of one of them is accepted by the others, which have the same key.
func NewSharedWith(key []byte) *Shared {
	s := NewShared()
	s.key = key
	return s
}
