//go:build linux

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// terminal is a pseudo terminal with a program in it.
type terminal struct {
	keys   *os.File
	screen *testenv.Buffer
	done   chan error
	cmd    *exec.Cmd
}

// inTerminal runs this binary as a command in a terminal of a size.
func inTerminal(t *testing.T, width, height uint16, name string, args ...string) *terminal {
	t.Helper()
	return inTerminalWith(t, nil, width, height, name, args...)
}

// inTerminalWith also sets environment variables.
func inTerminalWith(t *testing.T, env []string, width, height uint16, name string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "KUBECONFIG="+testenv.Shared().Kubeconfig()), env...)
	if err := errors.Join(cmd.Start(), slave.Close()); err != nil {
		t.Fatal(err)
	}
	term := &terminal{keys: master, screen: &testenv.Buffer{}, done: make(chan error, 1), cmd: cmd}
	go func() { _, _ = io.Copy(term.screen, master) }() // ends with the program
	go func() { term.done <- cmd.Wait() }()
	return term
}

// shows waits until the screen has had a text.
func (term *terminal) shows(t *testing.T, text string) {
	t.Helper()
	testenv.Eventually(t, func(context.Context) error {
		if !strings.Contains(term.screen.String(), text) {
			return fmt.Errorf("%q is not on the screen: %q", text, term.screen.String())
		}
		return nil
	})
}

// resize gives the terminal another size, which the program is sent a signal for.
func (term *terminal) resize(t *testing.T, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(term.keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}

func (term *terminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := term.keys.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// TestWatchInATerminal starts, draws, takes keys and quits, in a real terminal.
func TestWatchInATerminal(t *testing.T) {
	namespace := testenv.Namespace(t)
	program, err := exec.LookPath("spillway") // the test binary, by the name of the command
	if err != nil {
		t.Fatal(err)
	}
	out := &testenv.Buffer{}
	if code := cli.Run(t.Context(), command.Environment{
		Args: []string{"spillway", "install", "--rings=zones", "-n", namespace + "-system", "--watch-namespaces=" + namespace, "--kubeconfig=" + testenv.Shared().Kubeconfig()},
		Out:  out, Err: out, Now: time.Now, Lookup: os.LookupEnv,
	}); code != 0 {
		t.Fatal(out)
	}
	term := inTerminal(t, 80, 24, program, "watch", "-n", namespace)
	term.shows(t, "spillway watch  namespace "+namespace)
	term.shows(t, "no rollouts found")
	term.shows(t, "\x1b[?1049h") // it does not overwrite what was printed before
	makeGroup(t, namespace)
	term.shows(t, "rolloutgroup/ingester")
	term.press(t, "/nowhere")
	term.shows(t, "nothing contains nowhere")
	term.press(t, "\x1b")
	term.resize(t, 60, 20)
	term.shows(t, "tab timeline  p pause  r resume  t retry  ? help  q quit")
	term.resize(t, 120, 30)
	term.press(t, "p")
	term.shows(t, "why?")
	term.press(t, "because\r")
	term.shows(t, "rolloutgroup/ingester paused")
	testenv.Eventually(t, func(context.Context) error {
		if reason := makeGroup(t, namespace).Spec.Pause; reason == nil || reason.Reason != "because" {
			return fmt.Errorf("the pause is %v", reason)
		}
		return nil
	})
	// What was asked for is done and reported, also if the user quits immediately.
	term.press(t, "r")
	term.shows(t, "resume rolloutgroup/ingester; why?")
	term.press(t, "enough\rq")
	if err := <-term.done; err != nil {
		t.Errorf("it ends with %v", err)
	}
	term.shows(t, "\x1b[?1049l")
	term.shows(t, "rolloutgroup/ingester resumed")
	if pause := makeGroup(t, namespace).Spec.Pause; pause != nil {
		t.Errorf("the pause is %v", pause)
	}

	completeGroup(t, namespace)
	// With an object it ends automatically, and how it ended stays.
	term = inTerminal(t, 80, 24, program, "watch", "rolloutgroup/ingester", "-n", namespace, "--timeout", "1m")
	if err := <-term.done; err != nil {
		t.Errorf("it ends with %v: %q", err, term.screen)
	}
	term.shows(t, "rolloutgroup/ingester \x1b[32mComplete\x1b[0m: all of 0 zones are up to date\r\n")
}

// pressed are keys, and what is on the screen then.
type pressed struct{ keys, shows string }

// moving are the keys that move and fold. Once is enough: no width matters to them.
var moving = map[uint16][]pressed{60: {
	{"\x1b[6~", "all of 0 zones"}, {"\x1b[5~", "Deployment api"}, {"\x1b[F", "all of 0 zones"}, {"\x1b[H", "Deployment api"},
	{"jjj", "all of 0 zones"}, {"k", "Deployment web"}, {"\x1b[B", "all of 0 zones"}, {"\x1b[A", "Deployment web"},
	{"hh", "▸ secret/web"}, {"l", "▾ secret/web"}, {"\r", "▸ secret/web"}, {" ", "▾ secret/web"}, {"\x1b[D", "▸ secret/web"}, {"\x1b[C", "▾ secret/web"},
}}

// TestWatchTakesEveryKey presses each key of the help, on a narrow terminal and a wide one.
func TestWatchTakesEveryKey(t *testing.T) {
	namespace := testenv.Namespace(t)
	program, err := exec.LookPath("spillway")
	if err != nil {
		t.Fatal(err)
	}
	installKinds(t)
	deploy(t, namespace, "api", true)
	deploy(t, namespace, "web", false)
	recordWaiting(t, namespace)
	watched := []string{"SPILLWAY_NAMESPACES=" + namespace} // other tests install managers for their namespaces
	for _, width := range []uint16{60, 120} {
		t.Run(fmt.Sprintf("%d columns", width), func(t *testing.T) {
			completeGroup(t, namespace) // which was paused before
			term := inTerminalWith(t, watched, width, 24, program, "watch", "-n", namespace)
			term.shows(t, "q quit")
			known := []pressed{{"", "rolloutgroup/ingester"}, {"", "secret/web"}, {"", "Deployment api is waiting"}}
			for _, step := range slices.Concat(known, moving[width], []pressed{
				{"g", "Deployment api is waiting"}, {"?", "move to the first or the last"},
				{"\x1b", "deployment/web"}, // esc leaves the help, and not the watch
				{"w", "Deployment web is waiting: Secret web not found"},
				{"G", "all of 0 zones are up to date"}, {"g", "Deployment api is waiting"},
				{"gt", "retry: not of deployment/api"}, {"a", "approve: not of deployment/api"},
				{"Gt", "retry rolloutgroup/ingester; why?"}, {"\x1b", "? help"}, {"a", "approve rolloutgroup/ingester; why?"}, {"\x1b", "? help"},
				{"/web\r", "esc all"}, {"\x1b", "deployment/api"},
				{"Gp", "pause rolloutgroup/ingester; why?"}, {"because\r", "rolloutgroup/ingester paused"},
				{"r", "resume rolloutgroup/ingester; why?"}, {"\r", "rolloutgroup/ingester resumed"},
				{map[bool]string{true: "\t"}[width < 80], "Resumed, by admin"}, // the timeline, where both do not fit
			}) {
				term.press(t, step.keys)
				term.redraws(t, width, step.shows)
			}
			term.press(t, "q")
			if err := <-term.done; err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// redraws waits until a screen that is drawn again has a text.
func (term *terminal) redraws(t *testing.T, width uint16, text string) {
	t.Helper()
	drawn, height := len(term.screen.String()), uint16(24)
	testenv.Eventually(t, func(context.Context) error {
		screen := term.screen.String()
		if height ^= 1; strings.Contains(screen[drawn:], text) {
			return nil
		}
		drawn = len(screen)
		term.resize(t, width, height)
		return fmt.Errorf("%q is not on the screen: %q", text, screen)
	})
}

// deploy makes a tracked workload without Pods, and the Secret that it uses if there is to be one.
func deploy(t *testing.T, namespace, name string, complete bool) {
	t.Helper()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if complete {
		testenv.ApplyManifest(t, c, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\n", name, namespace))
	}
	testenv.ApplyManifest(t, c, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s, annotations: {spillway.dev/update-on-config-change: "true"}}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: registry.local/c:1, envFrom: [{secretRef: {name: %[1]s}}]}]}
`, name, namespace))
}

// TestASimulationIsInterrupted: one that takes minutes says how far it is, and ends immediately.
func TestASimulationIsInterrupted(t *testing.T) {
	program, err := exec.LookPath("spillway")
	if err != nil {
		t.Fatal(err)
	}
	const much = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 100000, selector: {matchLabels: {a: b}}, " +
		"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}}"
	file := filepath.Join(t.TempDir(), "much.yaml")
	if err := os.WriteFile(file, []byte(much), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(*terminal) error{
		"Ctrl+C":  func(term *terminal) error { _, err := term.keys.WriteString("\x03"); return err },
		"SIGTERM": func(term *terminal) error { return term.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			term := inTerminal(t, 80, 24, program, "simulate", "-f", file)
			term.shows(t, "playing the change: +")
			if err := end(term); err != nil {
				t.Fatal(err)
			}
			exited, ok := errors.AsType[*exec.ExitError](<-term.done)
			if !ok || exited.ExitCode() != 1 {
				t.Errorf("it ends with %v", exited)
			}
			term.shows(t, "\r\x1b[Kerror: interrupted\r\n")
		})
	}
}

// makeGroup makes a group, and returns it as it is.
func makeGroup(t *testing.T, namespace string) *v1alpha1.RolloutGroup {
	t.Helper()
	c := testenv.Client(t)
	group := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ingester"}}
	if err := c.Create(t.Context(), group.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
		t.Fatal(err)
	}
	return group
}

// completeGroup makes a group, and records what a manager decides of one without zones.
func completeGroup(t *testing.T, namespace string) {
	t.Helper()
	testenv.Eventually(t, func(ctx context.Context) error {
		group, now := makeGroup(t, namespace), metav1.NowMicro()
		group.Status.ObservedGeneration = group.Generation
		ring.ConditionsOf(rollout.PhaseComplete, false, "Complete", "all of 0 zones are up to date").Set(&group.Status.Conditions, group.Generation, now.Time)
		group.Status.Rollout = &v1alpha1.RolloutRecord{Phase: "Complete", StartedAt: now, FinishedAt: &now, DecidedAt: now}
		return testenv.Client(t).Status().Update(ctx, group)
	})
}

// record records, as a manager does, why the workloads that use an object are not complete.
func record(ctx context.Context, c client.Client, namespace string, object v1alpha1.ConfigRolloutObject, cause v1alpha1.RolloutCause) error {
	of, now := content.Object{Kind: content.Kind(object.Kind), Namespace: namespace, Name: object.Name}, metav1.NowMicro()
	return c.Create(ctx, &v1alpha1.ConfigRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: verdict.Name(of)}, Object: object,
		Rollout: &v1alpha1.RolloutRecord{Phase: "Waiting", StartedAt: now, DecidedAt: now, Causes: []v1alpha1.RolloutCause{cause}},
	})
}

// recordWaiting records that a workload waits for its turn, and another one for the Secret of its name.
func recordWaiting(t *testing.T, namespace string) {
	t.Helper()
	c, secret := testenv.Client(t), v1alpha1.ConfigRolloutObject{Kind: "Secret", Name: "web"}
	turn := v1alpha1.RolloutCause{State: ring.StateWaiting, Reason: string(rollout.ReasonTurn), Does: "is waiting", Why: "others are first", Count: 1, Units: []string{"Deployment api"}}
	lacks := v1alpha1.RolloutCause{
		State: ring.StateWaiting, Reason: "ConfigMissing", Does: "is waiting", Why: "Secret web not found", Count: 1, Units: []string{"Deployment web"},
		About: &v1alpha1.RolloutReference{Kind: "Secret", Name: "web"},
	}
	if err := errors.Join(record(t.Context(), c, namespace, v1alpha1.ConfigRolloutObject{}, turn), record(t.Context(), c, namespace, secret, lacks)); err != nil {
		t.Fatal(err)
	}
}
