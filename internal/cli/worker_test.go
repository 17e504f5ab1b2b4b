package cli_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// worker is a process that runs the commands of one script, one after another. A process
// for each takes several times as long as what most commands do.
type worker struct {
	requests *gob.Encoder
	answers  *gob.Decoder
	// variables are the names of those of the script.
	variables []string
}

// workerKey is where a script keeps its worker.
type workerKey struct{}

// request is a command, and where it runs.
type request struct {
	Args, Env []string
	Dir       string
}

// answer is what a command has written, and its exit code.
type answer struct {
	Out, Err []byte
	Code     int
}

// The files of a worker that are not those of the commands that it runs.
const (
	answersFile  = 3
	requestsFile = 4
)

// startWorker starts the worker of a script, which ends with the script.
func startWorker(env *testscript.Env, sets []string) error {
	reads, requests, err := os.Pipe()
	if err != nil {
		return err
	}
	answers, writes, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command("spillway-worker")
	cmd.Env, cmd.Dir, cmd.Stderr, cmd.ExtraFiles = env.Vars, env.WorkDir, os.Stderr, []*os.File{writes, reads}
	if err := errors.Join(cmd.Start(), writes.Close(), reads.Close()); err != nil {
		return err
	}
	env.Values[workerKey{}] = &worker{gob.NewEncoder(requests), gob.NewDecoder(answers), append(namesOf(env.Vars), sets...)}
	env.Defer(func() { _ = errors.Join(requests.Close(), cmd.Wait(), answers.Close()) })
	return nil
}

// namesOf are the names of variables.
func namesOf(variables []string) []string {
	var names []string
	for _, variable := range variables {
		name, _, _ := strings.Cut(variable, "=")
		names = append(names, name)
	}
	return names
}

// work is the process of a worker.
func work() {
	answers, requests := gob.NewEncoder(os.NewFile(answersFile, "answers")), gob.NewDecoder(os.NewFile(requestsFile, "requests"))
	for {
		var r request
		if err := requests.Decode(&r); err != nil {
			return // the script has ended
		}
		if err := answers.Encode(r.run()); err != nil {
			panic(err)
		}
	}
}

func (r *request) run() answer {
	os.Clearenv()
	for _, variable := range r.Env {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	if err := os.Chdir(r.Dir); err != nil {
		panic(err)
	}
	out, errs := &testenv.Buffer{}, &testenv.Buffer{}
	code := cli.Run(context.Background(), command.Environment{Args: r.Args, Out: out, Err: errs, Lookup: os.LookupEnv, Now: time.Now})
	return answer{[]byte(out.String()), []byte(errs.String()), code}
}

// variables are those that scripts set, besides those that they start with.
func variables(t *testing.T, dir string) []string {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range setsVariable.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var setsVariable = regexp.MustCompile(`(?m)^env (\w+)=`)

// ask has the worker of a script run a command of this program; others are processes.
func ask(ts *testscript.TestScript, args []string) answer {
	if args[0] != "spillway" && args[0] != "kubectl-kudo" {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = ts.MkAbs(".")
		out, err := cmd.CombinedOutput()
		if err != nil { // a file may not exist yet
			return answer{Out: out, Code: 1}
		}
		return answer{Out: out}
	}
	w, ok := ts.Value(workerKey{}).(*worker)
	if !ok {
		ts.Fatalf("the script has no worker")
	}
	r := request{Args: args, Dir: ts.MkAbs(".")}
	for _, name := range w.variables {
		if value := ts.Getenv(name); value != "" {
			r.Env = append(r.Env, name+"="+value)
		}
	}
	var a answer
	if err := errors.Join(w.requests.Encode(r), w.answers.Decode(&a)); err != nil {
		ts.Fatalf("%s: the worker has ended: %v", strings.Join(args, " "), err)
	}
	return a
}

// run COMMAND ARG...: run the command in the process of the script's worker. What is about the
// process itself is run by exec: what it reads, signals, and what libraries write to its streams.
func run(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: run COMMAND ARG...")
	}
	a := ask(ts, args)
	a.show(ts)
	if succeeded := a.Code == 0; succeeded == neg {
		ts.Fatalf("the exit code is %d", a.Code)
	}
}

// show makes what a command has written that of the command of the script.
func (a *answer) show(ts *testscript.TestScript) {
	_, err := ts.Stdout().Write(a.Out)
	ts.Check(err)
	_, err = ts.Stderr().Write(a.Err)
	ts.Check(err)
}

// exits CODE COMMAND ARG...: run the command, which ends with the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	a := ask(ts, args[1:])
	a.show(ts)
	if fmt.Sprint(a.Code) != args[0] {
		ts.Fatalf("the exit code is %d", a.Code)
	}
}

// eventually TEXT COMMAND ARG...: run the command until its output has the text.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually TEXT COMMAND ARG...")
	}
	showsEventually(ts, args[0], args[1:], func() {})
}

// showsEventually runs a command, and before it something else, until its output has a text.
func showsEventually(ts *testscript.TestScript, text string, args []string, before func()) {
	var last answer
	err := testenv.Until(context.Background(), func(context.Context) error {
		before()
		last = ask(ts, args)
		if last.Code != 0 || !strings.Contains(string(last.Out), text) {
			return fmt.Errorf("exit code %d, and %q is not in: %s%s", last.Code, text, last.Out, last.Err)
		}
		return nil
	})
	last.show(ts)
	ts.Check(err)
}
