//go:build unix

package render

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is how long processors have worked for this process.
func processorTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// limitProcess has the kernel refuse memory beyond what is watched, and end this process
// before others where memory is short.
func limitProcess() {
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: maxData, Max: maxData})
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600) // only Linux has it
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
}

// niceness lets others compute first.
const niceness = 5

// executable is the path of this program, also where its file was replaced since.
func executable() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable() //nolint:wrapcheck // it says it all
}
