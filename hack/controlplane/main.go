// Command controlplane finds the control plane that tests and the demo run on, and prints
// its folder as the last line of its output.
//
// It fetches the projects' own downloads that are pinned in downloads.txt. A program that is not
// pinned, cannot be reached, or is not what was pinned is built, alone, from the Go modules of
// hack/k8s in the same version. A checksum that is fetched beside a file is none: who replaces
// one replaces both; so the repository has them, and what was not checked is never executable.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the first of this program
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var insist bool
	var version string
	root := &cobra.Command{
		Use: "controlplane", Short: "Fetch or build the control plane of tests and demo, and print its folder",
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := newFinder(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			f.insist = insist
			if err := f.setKubernetes(version); err != nil {
				return err
			}
			folder, err := f.find(cmd.Context())
			if err == nil {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), folder)
			}
			return err
		},
	}
	root.Flags().BoolVar(&insist, "build", false, "build from Go modules, also where downloads could be had")
	root.Flags().StringVar(&version, "kubernetes", "", "another version of the API server and its controllers, such as 1.30.14; built from its Go module")
	root.AddCommand(&cobra.Command{
		Use: "pin", Short: "Download all files of all platforms, and write their checksums to downloads.txt",
		Long: "Download all files of all platforms, compare them with the checksums that their projects\n" +
			"publish, and write the checksums to downloads.txt. It needs the internet. What it writes\n" +
			"is reviewed like code: kwok publishes no checksums, so compare its lines with the digests\n" +
			"on the page of its release.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := newFinder(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return f.pin(cmd.Context())
		},
	})
	return root
}

// finder finds the control plane of this checkout.
type finder struct {
	// module is the folder hack/k8s, which says the versions.
	module string
	// table is the file of checksums.
	table    string
	cache    string
	platform platform
	sources  sources
	// telling keeps lines of progress apart, which several goroutines write.
	telling  sync.Mutex
	progress io.Writer
	// golang is the go command.
	golang string
	// kubernetes is another version of the API server and its controllers, empty for that of the module.
	kubernetes string
	// env is what the go command has besides this program's environment.
	env []string
	// insist is to build, also what could be fetched.
	insist bool
}

func newFinder(progress io.Writer) (*finder, error) {
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	hack := filepath.Join(root, "hack")
	return &finder{
		module: filepath.Join(hack, "k8s"), table: filepath.Join(hack, "controlplane", "downloads.txt"), cache: cache,
		platform: platform{runtime.GOOS, runtime.GOARCH}, sources: published(), progress: progress, golang: "go",
		env: []string{"GOFLAGS=-buildvcs=false"},
	}, nil
}

// checkout is the folder of the repository, this one or above.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for from := dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "controlplane", "downloads.txt")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a checkout of Spillway", from)
		}
	}
}

// cacheFolder is where programs are kept from run to run.
func cacheFolder() (string, error) {
	if dir := os.Getenv("SPILLWAY_CACHE"); dir != "" {
		return filepath.Join(dir, "k8s"), nil
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "spillway", "k8s"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("folder of the cache: %w", err)
	}
	return filepath.Join(home, ".cache", "spillway", "k8s"), nil
}
