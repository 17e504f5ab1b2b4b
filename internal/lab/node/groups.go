package node

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// groups is where control groups are: version 2, or a folder for each controller of version 1,
// maybe with one for version 2 beside.
const groups = "/sys/fs/cgroup"

// prefix begins the names of the control groups of nodes. The ID of the process follows that
// removes them.
const prefix = "spillway-node-"

func groupName(of string) string { return prefix + strconv.Itoa(os.Getpid()) + "-" + of }

// hierarchies are the folders in which a control group is made.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(groups, "cgroup.controllers")); err == nil {
		return []string{groups}, nil
	}
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("control groups: %w", err)
	}
	defer func() { _ = mounts.Close() }() // it was only read
	var all []string
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") && strings.HasPrefix(fields[1], groups) {
			all = append(all, fields[1])
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no control groups at %s", groups)
	}
	return all, nil
}

func makeGroups(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, in := range all {
		if err := os.Mkdir(filepath.Join(in, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("it needs control groups of its own: %w", err)
		}
	}
	return nil
}

// removeGroups removes control groups with those below. All their processes have ended.
func removeGroups(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, in := range all {
		errs = append(errs, removeGroup(filepath.Join(in, name)))
	}
	return errors.Join(errs...)
}

// removeGroup removes the folders of a control group, the deepest first. What a process that has
// ended leaves in it the kernel may take a moment to remove.
func removeGroup(root string) error {
	var folders []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil // it may be gone
	})
	for _, folder := range slices.Backward(folders) {
		removed := syscall.Rmdir(folder)
		for range 50 {
			if !errors.Is(removed, syscall.EBUSY) {
				break
			}
			time.Sleep(20 * time.Millisecond)
			removed = syscall.Rmdir(folder)
		}
		if removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove the control group %s: %w", folder, removed))
		}
	}
	return err
}

// sweep removes the control groups of nodes whose process was killed.
func sweep() error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, in := range all {
		found, _ := filepath.Glob(filepath.Join(in, prefix+"*"))
		for _, path := range found {
			pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), prefix), "-")
			if _, err := os.Stat("/proc/" + pid); errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, removeGroup(path))
			}
		}
	}
	return errors.Join(errs...)
}
