package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// ErrUnavailable is what errors wrap that are not about the template: the process that
// renders could not be started, or was ended from the outside. Try again later.
var ErrUnavailable = errors.New("no process to render in")

const (
	// maxProcesses is how many processes render at a time.
	maxProcesses = 2
	// maxWait is how long to wait for an answer. It is much longer than maxTime, since the
	// processor may be busy.
	maxWait = time.Minute
	// idleFor is how long a process waits for another request.
	idleFor = 30 * time.Second
)

// sandbox are the processes that render for this one, started when there is something to do.
type sandbox struct {
	// places are as many as there may be processes: a nil has yet to be started.
	places chan *process
}

// shared is the sandbox of this process.
var shared = sync.OnceValue(func() *sandbox { //nolint:gochecknoglobals // as the limits are for the process as a whole
	s := &sandbox{places: make(chan *process, maxProcesses)}
	for range maxProcesses {
		s.places <- nil
	}
	return s
})

// ask has a request answered in another process.
func ask(r *request) (reply, error) {
	if os.Getenv(variable) != "" {
		return reply{}, fmt.Errorf("%w: this is the one that renders", ErrUnavailable)
	}
	a, err := shared().ask(r)
	switch {
	case err != nil:
		return reply{}, fmt.Errorf("template %s cannot be rendered: %w", r.Name, err)
	case a.Error != "":
		return reply{}, errors.New(a.Error) //nolint:err113 // it was one in the other process
	default:
		return a, nil
	}
}

func (s *sandbox) ask(r *request) (reply, error) {
	p := <-s.places
	defer func() { s.places <- p }()
	if p != nil && p.idle.Stop() {
		a, err := p.ask(r)
		if err == nil || !errors.Is(err, ErrUnavailable) { // otherwise it had ended while it was idle
			p = p.rest(err)
			return a, err
		}
	}
	p, err := start()
	if err != nil {
		return reply{}, err
	}
	a, err := p.ask(r)
	p = p.rest(err)
	return a, err
}

// rest keeps a process for the next request, unless it has ended.
func (p *process) rest(err error) *process {
	if err != nil {
		return nil
	}
	p.idle = time.AfterFunc(idleFor, p.end) //nolint:forbidigo // it ends a process, and decides nothing
	return p
}

// process is one that renders.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	said    *beginning
	// idle ends it once it has nothing to do.
	idle *time.Timer
	end  func()
}

func start() (*process, error) {
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	p := &process{command: exec.Command(self), said: &beginning{}} //nolint:gosec,noctx // it is this very program, and serves many requests
	p.command.Env, p.command.Dir, p.command.Stderr = []string{variable + "=true", "GOTRACEBACK=none"}, "/", p.said
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	p.in, p.out = in, json.NewDecoder(out)
	p.end = sync.OnceFunc(func() {
		_ = p.in.Close()
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
	})
	return p, nil
}

// ask sends a request and waits for the answer. With an error the process has ended.
func (p *process) ask(r *request) (reply, error) {
	late := time.AfterFunc(maxWait, func() { _ = p.command.Process.Kill() }) //nolint:forbidigo // it ends a process, and decides nothing
	defer late.Stop()
	raw, err := json.Marshal(r)
	if err != nil {
		p.end()
		return reply{}, fmt.Errorf("encode: %w", err)
	}
	_, err = p.in.Write(raw)
	var a reply
	if err == nil {
		err = p.out.Decode(&a)
	}
	if err != nil {
		return reply{}, p.ended()
	}
	return a, nil
}

// ended says why a process has ended.
func (p *process) ended() error {
	_ = p.in.Close()
	_ = p.command.Wait()
	p.end = func() {}
	said := p.said.String()
	switch code := p.command.ProcessState.ExitCode(); {
	case code == exitTime:
		return fmt.Errorf("it takes more than %s of processor time", maxTime)
	case code == exitMemory, strings.Contains(said, "out of memory"), strings.Contains(said, "cannot allocate memory"):
		return fmt.Errorf("it needs more than %d MiB of memory", maxMemory>>20)
	case strings.Contains(said, "stack overflow"), strings.Contains(said, "stack exceeds"):
		return errors.New("it is nested too deeply, or contains itself")
	default:
		first, _, _ := strings.Cut(said, "\n")
		return fmt.Errorf("%w: it ended with %s %s", ErrUnavailable, p.command.ProcessState, first)
	}
}

// beginning keeps the first part of what is written to it.
type beginning struct{ bytes.Buffer }

const maxSaid = 4 << 10

// Write keeps what there is room for.
func (b *beginning) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxSaid-b.Len())])
	return len(p), nil
}
