package simulate

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// digests are what objects come to, so that each state of one is read once. It is shared by all forks.
type digests map[client.Object]digest

// digest is an object without what differs from one way to it to another, and the objects that it refers to.
type digest struct {
	sum  uint64
	uids []string
}

// mostDigests is how many are kept.
const mostDigests = 1 << 14

var (
	instant   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	simulated = regexp.MustCompile(`simulated-\d+`)
)

// State identifies what can still happen: a world goes on as another one of the same state does. It has
// everything that objects say but times, messages and managed fields, the Pods that are modelled by
// numbers, and when each actor acts next: a wait for a time ends with an actor that acts then.
func (p *Play) State() uint64 {
	h := fnv.New64a()
	live := map[string]string{}
	all := p.s.Store.All()
	for _, obj := range all {
		live[string(obj.GetUID())] = obj.GetNamespace() + "/" + obj.GetName()
	}
	for _, obj := range all {
		d := p.digests.of(obj)
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, d.sum))
		for _, uid := range d.uids {
			_, _ = h.Write([]byte(live[uid] + ";"))
		}
	}
	p.s.models.WriteState(h)
	var due []string
	for e, at := range p.s.Due {
		due = append(due, fmt.Sprint(e.Actor, e.Key, at.Sub(p.s.Now)))
	}
	slices.Sort(due)
	_, _ = fmt.Fprintln(h, due)
	for _, of := range slices.SortedFunc(maps.Keys(p.s.Faults), record.Key.Compare) {
		_, _ = fmt.Fprintln(h, of, p.s.Faults[of])
	}
	return h.Sum64()
}

func (d digests) of(obj client.Object) digest {
	if known, ok := d[obj]; ok {
		return known
	}
	if len(d) > mostDigests {
		clear(d)
	}
	d[obj] = digestOf(obj)
	return d[obj]
}

func digestOf(obj client.Object) digest {
	raw, err := json.Marshal(obj)
	var content any
	if err != nil || json.Unmarshal(raw, &content) != nil {
		return digest{sum: sumOf(string(obj.GetUID()) + obj.GetResourceVersion())}
	}
	text := &strings.Builder{}
	_, _ = fmt.Fprintf(text, "%T ", obj)
	writeSaying(text, content, []string{"resourceVersion", "managedFields", "message"}, func(value string) string {
		return instant.ReplaceAllString(value, "T")
	})
	bare := text.String()
	return digest{sumOf(simulated.ReplaceAllString(bare, "U")), simulated.FindAllString(bare, -1)}
}

func sumOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}
