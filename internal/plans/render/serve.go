package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/plans/object"
)

const (
	// variable is set in the environment of a process that renders.
	variable = "SPILLWAY_RENDER"
	// maxTime is how long a processor may work on one request.
	maxTime = 2 * time.Second
	// maxMemory is how many bytes the process may use, maxData how many it may ask the
	// kernel for in between; gcMemory is where it begins to collect garbage eagerly.
	maxMemory, maxData, gcMemory = 64 << 20, 512 << 20, 48 << 20
	// watchEvery is how often that is looked at while a request is answered.
	watchEvery = 5 * time.Millisecond
	// maxStack bounds how deep functions may call each other. The limit of Go ends the
	// process as well, but allows 1 GB.
	maxStack = 16 << 20
	// maxError is how much of what is wrong is returned.
	maxError = 2 << 10
)

// The codes with which the process ends, besides those of Go.
const (
	exitTime   = 3
	exitMemory = 4
	exitLost   = 5
)

// The process that renders is this very program, whichever it is: the manager, a
// command, or a test. So nothing must be installed beside it, and no program that
// renders can forget to do so. It renders until its input ends, and runs nothing else.
func init() { //nolint:gochecknoinits // it must come before main, and before what other packages start
	if os.Getenv(variable) != "" {
		os.Exit(serve(os.Stdin, os.Stdout))
	}
}

// serve answers requests within the limits. What exceeds them ends the process.
func serve(in io.Reader, out io.Writer) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // the input ends when the caller does
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(gcMemory)
	limitProcess()
	var began atomic.Int64
	go watch(&began)
	requests, replies := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); err != nil {
			return 0
		}
		began.Store(int64(processorTime()) + 1)
		answer := r.answer()
		began.Store(0)
		if err := replies.Encode(answer); err != nil {
			return exitLost
		}
		if memoryInUse() > gcMemory/2 { // what one request leaves behind does not count for the next
			debug.FreeOSMemory()
		}
	}
}

// watch ends the process once a request has taken too much.
func watch(began *atomic.Int64) {
	for range time.Tick(watchEvery) { //nolint:forbidigo // what a request takes is measured, nothing is decided
		switch at := began.Load(); {
		case at == 0:
		case processorTime()-time.Duration(at) > maxTime:
			os.Exit(exitTime)
		case memoryInUse() > maxMemory:
			os.Exit(exitMemory)
		}
	}
}

func memoryInUse() uint64 {
	usage := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(usage)
	return usage[0].Value.Uint64() - usage[1].Value.Uint64()
}

// answer does what a request asks for.
func (r *request) answer() (a reply) {
	defer func() {
		if v := recover(); v != nil {
			a = failed(fmt.Errorf("template %s cannot be rendered: %v", r.Name, v)) //nolint:err113 // a panic of a function
		}
	}()
	var err error
	switch r.Do {
	case doRender:
		a.Text, err = execute(r.Name, r.Text, &r.Context)
	case doObjects:
		a.Objects, err = r.objects()
	case doChart:
		a.Objects, err = r.chartObjects()
	case doValues:
		a.Values, err = r.parameterValues()
	case doReferences:
		a.References, err = references(r.Name, r.Text)
	case doVerify:
		_, err = compile(r.Name, r.Text)
	default:
		err = errors.New("unknown request " + r.Do)
	}
	if err != nil {
		return failed(err)
	}
	return a
}

func failed(err error) reply {
	text := err.Error()
	if len(text) > maxError {
		text = text[:maxError] + "…"
	}
	return reply{Error: text}
}

// objects are those of the manifest that the template makes.
func (r *request) objects() ([]json.RawMessage, error) {
	text, err := execute(r.Name, r.Text, &r.Context)
	if err != nil {
		return nil, err
	}
	objects, err := object.Parse(text, r.DefaultName)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", r.Name, err)
	}
	all := make([]json.RawMessage, len(objects))
	for i, u := range objects {
		if all[i], err = u.MarshalJSON(); err != nil {
			return nil, fmt.Errorf("template %s: %w", r.Name, err)
		}
	}
	return all, nil
}

// parameterValues are those of the map that the template makes.
func (r *request) parameterValues() (map[string]string, error) {
	text, err := execute(r.Name, r.Text, &r.Context)
	if err != nil {
		return nil, err
	}
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		return nil, fmt.Errorf("template %s must be a map of parameters: %w", r.Name, err)
	}
	all := make(map[string]string, len(parsed))
	for name, value := range parsed {
		if s, ok := value.(string); ok {
			all[name] = s
			continue
		}
		raw, err := yaml.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("template %s: parameter %s: %w", r.Name, name, err)
		}
		all[name] = strings.TrimSuffix(string(raw), "\n")
	}
	return all, nil
}
