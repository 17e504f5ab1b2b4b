package world

import (
	"container/heap"

	"k8s.io/apimachinery/pkg/types"
)

// queue is what an actor has to look at now, each once, by name.
type queue struct {
	has  map[types.NamespacedName]bool
	keys keys
}

func (q *queue) add(key types.NamespacedName) {
	if !q.has[key] {
		q.has[key] = true
		heap.Push(&q.keys, key)
	}
}

// next takes the first; false if there is none.
func (q *queue) next() (key types.NamespacedName, ok bool) {
	if len(q.keys) == 0 {
		return key, false
	}
	key = q.keys[0]
	heap.Pop(&q.keys)
	delete(q.has, key)
	return key, true
}

// keys are a heap: the least comes first.
//
//nolint:recvcheck // as package heap wants it: what changes its length has a pointer
type keys []types.NamespacedName

// Len implements [heap.Interface].
func (k keys) Len() int { return len(k) }

// Less implements [heap.Interface].
func (k keys) Less(i, j int) bool { return compareKeys(k[i], k[j]) < 0 }

// Swap implements [heap.Interface].
func (k keys) Swap(i, j int) { k[i], k[j] = k[j], k[i] }

// Push implements [heap.Interface].
func (k *keys) Push(key any) {
	if key, ok := key.(types.NamespacedName); ok {
		*k = append(*k, key)
	}
}

// Pop implements [heap.Interface].
func (k *keys) Pop() any {
	last := len(*k) - 1
	key := (*k)[last]
	*k = (*k)[:last]
	return key
}
