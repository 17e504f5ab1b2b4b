package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// How long to wait for an answer, and for more of one. A download may take as long as it
// needs while something arrives. Variables, because tests are not as patient.
var (
	answerIn = 10 * time.Second
	stalled  = 30 * time.Second
	tellEach = 5 * time.Second
)

const megabyte = 1 << 20

// fetchAll fetches the programs at the same time. The first that fails ends the others.
func (f *finder) fetchAll(ctx context.Context, folder string, pins []pin) error {
	group, ctx := errgroup.WithContext(ctx)
	var fetched, total atomic.Int64
	for _, p := range pins {
		group.Go(func() error { return f.fetch(ctx, folder, p, &fetched, &total) })
	}
	done := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		ticker := time.NewTicker(tellEach) //nolint:forbidigo // it waits for real downloads
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				f.tellf("  %d of %d MB", fetched.Load()/megabyte, total.Load()/megabyte)
			}
		}
	}()
	err := group.Wait()
	close(done)
	<-told
	return err //nolint:wrapcheck // each says what it is about
}

// fetch fetches one program. Its file becomes executable only when it is what was pinned.
func (f *finder) fetch(ctx context.Context, folder string, p pin, fetched, total *atomic.Int64) (err error) {
	address, member := f.sources.file(p.program, p.version, p.platform)
	name := filepath.Join(folder, p.name)
	file, err := os.OpenFile(name+".download", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // a folder of our own
	if err != nil {
		return fmt.Errorf("file to fetch into: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	sum := sha256.New()
	counted := writerFunc(func(chunk []byte) (int, error) {
		fetched.Add(int64(len(chunk)))
		return len(chunk), nil
	})
	if err := get(ctx, address, io.MultiWriter(file, sum, counted), func(size int64) { total.Add(size) }); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != p.sha256 {
		return fmt.Errorf("%s has SHA-256 %s instead of %s, which downloads.txt pins; it was not used", address, got, p.sha256)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read what was fetched: %w", err)
	}
	var content io.Reader = file
	if member != "" {
		if content, err = open(file, member); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
	}
	return install(name, content)
}

// install writes a program.
func install(name string, content io.Reader) error {
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // a program
	if err != nil {
		return fmt.Errorf("write a program: %w", err)
	}
	_, err = io.Copy(to, content)
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// open finds a file in an archive.
func open(archive io.Reader, member string) (io.Reader, error) {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("there is no %s in it", member)
		}
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		if h.Name == member && h.Typeflag == tar.TypeReg {
			return r, nil
		}
	}
}

func sumOf(ctx context.Context, address string) (string, error) {
	sum := sha256.New()
	if err := get(ctx, address, sum, nil); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// get copies what is at an address. It is an error if there is less than was announced, or
// if nothing arrives for a while.
func get(ctx context.Context, address string, to io.Writer, announce func(size int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: answerIn}).DialContext,
		TLSHandshakeTimeout: answerIn, ResponseHeaderTimeout: answerIn, ForceAttemptHTTP2: true,
	}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("fetch: %w", err) // it names the address
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("fetch %s: %s", address, response.Status)
	}
	if announce != nil && response.ContentLength > 0 {
		announce(response.ContentLength)
	}
	watch := time.AfterFunc(stalled, func() { cancel(fmt.Errorf("nothing has arrived for %s", stalled)) }) //nolint:forbidigo // the same
	defer watch.Stop()
	alive := writerFunc(func(chunk []byte) (int, error) {
		watch.Reset(stalled)
		return len(chunk), nil
	})
	if _, err := io.Copy(io.MultiWriter(to, alive), response.Body); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("fetch %s: %w", address, err)
	}
	return nil
}

type writerFunc func(chunk []byte) (int, error)

func (f writerFunc) Write(chunk []byte) (int, error) { return f(chunk) }
