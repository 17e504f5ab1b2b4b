package manager

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What was touched of the program's file is no memory of this process any more, and what goes on is mapped again.
func TestThePagesOfTheProgramAreReleased(t *testing.T) {
	if err := adviseProgram(unix.MADV_POPULATE_READ); err != nil {
		t.Fatal(err)
	}
	before := ofFiles(t)
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := ofFiles(t); after >= before/2 {
		t.Errorf("%d KiB of files are in memory, %d before", after, before)
	}
}

// ofFiles is how many KiB of files are in the memory of this process.
func ofFiles(t *testing.T) (n int) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if _, err := fmt.Sscanf(line, "RssFile: %d kB", &n); err == nil {
			return n
		}
	}
	t.Fatal("the kernel does not say it")
	return 0
}
