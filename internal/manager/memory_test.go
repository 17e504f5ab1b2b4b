package manager_test

import (
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-logr/logr/funcr"

	"github.com/spillway-dev/spillway/internal/manager"
)

// The runtime respects what the container may have, and leaves a part of it to others.
func TestTheMemoryLimitIsThatOfTheContainer(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"
	for name, test := range map[string]struct {
		file, text, env string
		want            int64
		says            string
	}{
		"version 2":              {file: v2, text: "268435500\n", want: 201326625, says: "memory limit set"},
		"version 1":              {file: v1, text: "104857600\n", want: 78643200, says: "memory limit set"},
		"none in version 2":      {file: v2, text: "max\n", want: math.MaxInt64},
		"none in version 1":      {file: v1, text: "9223372036854771712\n", want: math.MaxInt64},
		"no control groups":      {file: "etc/hosts", text: "x", want: math.MaxInt64},
		"a limit of the user":    {file: v2, text: "268435456", env: "100MiB", want: math.MaxInt64},
		"what is not understood": {file: v2, text: "much", want: math.MaxInt64, says: "set GOMEMLIMIT"},
	} {
		t.Run(name, func(t *testing.T) {
			before := debug.SetMemoryLimit(math.MaxInt64)
			defer debug.SetMemoryLimit(before)
			var said strings.Builder
			log := funcr.New(func(_, line string) { said.WriteString(line) }, funcr.Options{})
			manager.LimitMemory(fstest.MapFS{test.file: {Data: []byte(test.text)}}, func(string) string { return test.env }, log)
			if got := debug.SetMemoryLimit(-1); got != test.want {
				t.Errorf("the limit is %d, want %d", got, test.want)
			}
			if got := said.String(); test.says == "" && got != "" || !strings.Contains(got, test.says) {
				t.Errorf("the log has %q", got)
			}
		})
	}
}
