package manager

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram takes the pages of the program's own file out of the memory of this process. Starting touches most of
// them, and what goes on few. The kernel keeps them as a cache that it can drop, and maps again what is used.
func releaseProgram() error { return adviseProgram(unix.MADV_COLD, unix.MADV_DONTNEED) } // the first alone leaves them

// adviseProgram gives the kernel advice on the pages of the program's own file that nothing writes to.
func adviseProgram(advices ...uintptr) error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("which program this is: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("what of the program is in memory: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var may, offset, device, inode, path string
		n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %s %s", &from, &to, &may, &offset, &device, &inode, &path)
		if n < 7 || path != program || strings.Contains(may, "w") {
			continue
		}
		for _, advice := range advices {
			if _, _, failed := unix.Syscall(unix.SYS_MADVISE, from, to-from, advice); failed != 0 {
				return fmt.Errorf("madvise %d: %w", advice, failed)
			}
		}
	}
	return nil
}
