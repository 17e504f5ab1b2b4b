package command

import (
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// A namespace that is named twice is watched once, however often the options are read, and no other one is.
func TestANamespaceIsNamedTwice(t *testing.T) {
	t.Parallel()
	rings, flags := RingFlags{}, pflag.NewFlagSet("manager", pflag.ContinueOnError)
	rings.Add(flags)
	if err := flags.Parse([]string{"--namespaces=shop,bank", "--namespaces=shop", "--pin-namespaces=shop"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o, err := rings.Options(func() time.Time { return time.Unix(1, 0) })
		if err != nil || !slices.Equal(o.Namespaces, []string{"bank", "shop"}) {
			t.Fatalf("%q, %v", o.Namespaces, err)
		}
	}
}
