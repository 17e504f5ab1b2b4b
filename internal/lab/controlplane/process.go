package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to end before it is killed.
const stopTimeout = 10 * time.Second

// process is a program that runs until it is stopped.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// start is startWith without further variables.
func start(dir, path string, stay bool, args ...string) (*process, error) {
	return startWith(dir, path, stay, nil, args...)
}

// startWith runs a program with its output in a file. Unless it is to stay, Linux
// kills it when this process ends.
func startWith(dir, path string, stay bool, env []string, args ...string) (*process, error) {
	name := filepath.Base(path)
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer func() { _ = out.Close() }() // the child has its own handle
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = out, out, dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = attributes(stay)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its log
		close(p.done)
	}()
	return p, nil
}

// alive is an error if the process has ended, with the last lines that it wrote.
func (p *process) alive() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended: %s", p.name, p.tail())
	default:
		return nil
	}
}

// tail is the end of the log.
func (p *process) tail() string {
	const lines = 15
	raw, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// stop ends the process, and waits until it has ended.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

// kill ends the process without asking.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// end ends a process that another process started, and waits until it has ended.
func end(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", pid, err)
	}
	signal := syscall.SIGTERM
	for started := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := process.Signal(signal)
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("end process %d: %w", pid, err)
		}
		if signal = 0; time.Since(started) > stopTimeout { // 0 only asks whether it lives
			signal = syscall.SIGKILL
		}
	}
}
