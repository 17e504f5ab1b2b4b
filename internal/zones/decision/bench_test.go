package decision

import "testing"

func BenchmarkDecide(b *testing.B) {
	o := group(zoneOf("zone-a", "v2 v1 v1"), zoneOf("zone-b", "v1 v1 v1"), zoneOf("zone-c", "v1 v1 v1")).locked("zone-a")
	d := group(zoneOf("zone-a", "v2 v2 v2", done), zoneOf("zone-b", "v2 v2 v2", done), zoneOf("zone-c", "v2 v2 v2", done))
	b.Run("permits", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			Decide(*o)
		}
	})
	b.Run("converged", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			Decide(*d)
		}
	})
}
