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
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// How long to wait for an answer, and for more of one. A download may take as long as it
// needs while something arrives. Variables, because tests are not as patient.
var (
	answerIn = 10 * time.Second
	stalled  = 30 * time.Second
	tellEach = 5 * time.Second
)

const megabyte = 1 << 20

// fetchAll fetches at the same time those programs that are pinned. One that cannot be had is left
// to be built, and the output says so; only an interruption is an error.
func (f *finder) fetchAll(ctx context.Context, missing []*made) error {
	missing = slices.DeleteFunc(missing, func(m *made) bool { return m.fetched == "" })
	if len(missing) == 0 {
		return nil
	}
	f.tellf("fetching %d programs of the control plane, once", len(missing))
	var fetched, total atomic.Int64
	stop := f.tellProgress(&fetched, &total)
	defer stop()
	var group sync.WaitGroup
	for _, m := range missing {
		group.Go(func() {
			if err := f.fetch(ctx, m, &fetched, &total); err != nil && ctx.Err() == nil {
				f.tellf("%v; building %s from Go modules instead", err, m.name)
			}
		})
	}
	group.Wait()
	return ctx.Err() //nolint:wrapcheck // an interruption
}

// tellProgress tells from time to time how much has been fetched.
func (f *finder) tellProgress(fetched, total *atomic.Int64) (stop func()) {
	done := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
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
	})
	return func() {
		close(done)
		telling.Wait()
	}
}

// fetch fetches one program. It gets its name and becomes executable only when it is what was pinned.
func (f *finder) fetch(ctx context.Context, m *made, fetched, total *atomic.Int64) (err error) {
	address, member := f.sources.file(m.program, m.version, f.platform)
	file, err := os.CreateTemp(f.store(), ".fetching-")
	if err != nil {
		return fmt.Errorf("file to fetch into: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.RemoveAll(file.Name())) }()
	sum := sha256.New()
	counted := writerFunc(func(chunk []byte) (int, error) {
		fetched.Add(int64(len(chunk)))
		return len(chunk), nil
	})
	if err := get(ctx, address, io.MultiWriter(file, sum, counted), func(size int64) { total.Add(size) }); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.pin.sha256 {
		return fmt.Errorf("%s has SHA-256 %s instead of %s, which downloads.txt pins; it was not used", address, got, m.pin.sha256)
	}
	if member == "" {
		return install(file.Name(), m.fetched)
	}
	return f.unpack(file, member, m.fetched)
}

// unpack installs a member of an archive.
func (f *finder) unpack(archive io.ReadSeeker, member, to string) (err error) {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read what was fetched: %w", err)
	}
	content, err := open(archive, member)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(f.store(), ".unpacking-")
	if err != nil {
		return fmt.Errorf("file to unpack into: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(file.Name())) }()
	_, err = io.Copy(file, content)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("unpack %s: %w", member, err)
	}
	return install(file.Name(), to)
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
