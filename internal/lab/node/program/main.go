// Command program is all that there is in the image of a real node's Pods. Without arguments it
// waits for its end, as a Pod's sandbox does.
//
// As "serve" it reads, once, what it is configured with: the variables VALUE and those that begin
// with APP_, and the files below /config. It is as good as what it has read:
//
//	bad      it exits
//	late     it is ready, and exits some seconds later
//	unready  it runs, and is never ready
//
// It answers at port 8080: /ready and /live, its probes, which fail once /sick or /fail was asked
// for; /read, what it has read; /now, what the files contain now; and /prepare as a Pod that is
// prepared for its removal. As "once" it only ends, with an error if what it has read is bad.
//
// How a container ended says in any case what it had read.
package main

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// lateAfter is how long a program with the value "late" is ready.
const lateAfter = 4 * time.Second

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	read := strings.Join(slices.Concat(variables(), files()), " ")
	_ = os.WriteFile("/dev/termination-log", []byte(read), 0o600) // a sandbox has none
	bad := strings.Contains(read, "bad")
	switch {
	case len(os.Args) < 2:
	case bad:
		os.Exit(3)
	case os.Args[1] == "once":
		return
	default:
		if strings.Contains(read, "late") {
			time.AfterFunc(lateAfter, func() { os.Exit(3) })
		}
		go func() { log.Fatal(serve(read)) }()
	}
	<-stop
	os.Exit(143) // as programs do that do not handle the signal: it has not done its work
}

// variables are those that config is given by.
func variables() (all []string) {
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "VALUE=") || strings.HasPrefix(v, "APP_") {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// files are those below /config, by their names there.
func files() (all []string) {
	paths, _ := filepath.Glob("/config/*")
	deeper, _ := filepath.Glob("/config/*/*")
	for _, path := range append(paths, deeper...) {
		if content, err := os.ReadFile(path); err == nil {
			all = append(all, strings.TrimPrefix(path, "/config/")+"="+strings.TrimSpace(string(content)))
		}
	}
	return all
}

func serve(read string) error {
	var sick, failing atomic.Bool
	sick.Store(strings.Contains(read, "unready"))
	http.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) { answer(w, !sick.Load(), read) })
	http.HandleFunc("/live", func(w http.ResponseWriter, _ *http.Request) { answer(w, !failing.Load(), read) })
	http.HandleFunc("/sick", func(http.ResponseWriter, *http.Request) { sick.Store(true) })
	http.HandleFunc("/fail", func(http.ResponseWriter, *http.Request) { failing.Store(true) })
	http.HandleFunc("/read", func(w http.ResponseWriter, _ *http.Request) { answer(w, true, read) })
	http.HandleFunc("/now", func(w http.ResponseWriter, _ *http.Request) { answer(w, true, strings.Join(files(), " ")) })
	http.Handle("/prepare", &preparation{})
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: 10 * time.Second}
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func answer(w http.ResponseWriter, well bool, text string) {
	if !well {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprintln(w, text)
}

// preparation is since when a Pod is prepared to be removed.
type preparation struct {
	mu    sync.Mutex
	since time.Time
}

func (p *preparation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Method == http.MethodDelete:
		p.since = time.Time{}
	case r.Method == http.MethodPost && p.since.IsZero():
		p.since = time.Now()
	}
	if !p.since.IsZero() {
		_, _ = fmt.Fprintf(w, `{"timestamp": %d}`, p.since.Unix())
	}
}
