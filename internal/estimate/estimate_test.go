package estimate

import (
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	t.Parallel()
	seconds := func(all ...int) (times []time.Duration) {
		for _, s := range all {
			times = append(times, time.Duration(s)*time.Second)
		}
		return times
	}
	for name, test := range map[string]struct {
		seen []time.Duration
		want []time.Duration
	}{
		"one is half to double":        {seconds(10), seconds(5, 10, 20)},
		"two leave half the distance":  {seconds(30, 10), seconds(0, 30, 40)},
		"more leave less":              {seconds(20, 40, 10, 30, 20), seconds(4, 20, 46)},
		"nothing takes less than none": {seconds(0, 90), seconds(0, 90, 135)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Of(test.seen); got != (Estimate{test.want[0], test.want[1], test.want[2]}) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
