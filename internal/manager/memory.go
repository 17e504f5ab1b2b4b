package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// memoryShare is how much of the memory of the container the Go runtime may take, in
// percent. The rest is for what it does not count, and for the processes that render
// templates. Near the limit the collector works more, instead of the kernel ending the
// manager.
const memoryShare = 75

// memoryFiles say how much memory this container may have: of control groups of
// version 2, and of version 1.
var memoryFiles = []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}

// LimitMemory makes the Go runtime respect the memory limit of the container, unless the
// environment names a limit.
func LimitMemory(root fs.FS, env func(string) string, log logr.Logger) {
	if env("GOMEMLIMIT") != "" {
		return
	}
	limit, err := containerMemory(root)
	if err != nil {
		log.Error(err, "memory limit of the container unknown; set GOMEMLIMIT")
		return
	}
	if limit == math.MaxInt64 {
		return
	}
	debug.SetMemoryLimit(limit / 100 * memoryShare)
	log.Info("memory limit set", "bytes", limit/100*memoryShare, "container", limit)
}

// containerMemory returns the limit of this container in bytes, the largest number if it
// has none.
func containerMemory(root fs.FS) (int64, error) {
	for _, file := range memoryFiles {
		raw, err := fs.ReadFile(root, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read the memory limit: %w", err)
		}
		return parseMemory(file, strings.TrimSpace(string(raw)))
	}
	return math.MaxInt64, nil
}

// noLimit is what version 1 has where there is no limit: the largest number of pages.
const noLimit = math.MaxInt64 - 1<<20

func parseMemory(file, text string) (int64, error) {
	if text == "max" {
		return math.MaxInt64, nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return 0, fmt.Errorf("%s says %.20q", path.Base(file), text)
	}
	if limit >= noLimit {
		return math.MaxInt64, nil
	}
	return limit, nil
}

// startup is how long after the caches have been filled what starting took is garbage.
const startup = 10 * time.Second

// releaseMemory gives back what starting and filling the caches took, which is several times what they
// hold. The runtime would keep it for what comes later.
func releaseMemory(mgr ctrl.Manager) error {
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		mgr.GetCache().WaitForCacheSync(ctx)
		started, cancel := context.WithTimeout(ctx, startup)
		defer cancel()
		<-started.Done()
		if ctx.Err() == nil {
			debug.FreeOSMemory()
			if err := releaseProgram(); err != nil {
				mgr.GetLogger().Info("the pages of the program stay in memory", "because", err.Error())
			}
		}
		return nil
	}))
	if err != nil {
		return fmt.Errorf("release memory: %w", err)
	}
	return nil
}

// Root is the file system of this machine.
func Root() fs.FS { return os.DirFS("/") }
