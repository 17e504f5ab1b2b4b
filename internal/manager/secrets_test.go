package manager_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// childOf names, in the environment of a manager that is a process of its own, the
// namespace that it watches.
const childOf = "SPILLWAY_TEST_MANAGER_OF"

// child runs a manager until its input ends.
func child() {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	err = manager.Run(ctx, cfg, manager.Options{
		Rings: []string{manager.RingConfig}, Namespaces: []string{os.Getenv(childOf)}, MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
		Config: config.Options{Now: time.Now, Namespaces: []string{os.Getenv(childOf)}, Options: decision.Options{UpdateBurst: 100}},
	})
	if err != nil {
		panic(err)
	}
}

// A process that reads the memory of the manager finds no value of a Secret or a ConfigMap, with
// the setting that is installed: what the collector frees is overwritten.
func TestTheMemoryHoldsNoValues(t *testing.T) {
	c, ns := newClient(t, testenv.Shared()), testenv.Namespace(t)
	values := map[string]string{"used": random(t), "unused": random(t), "config": random(t)}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	d := web()
	d.Namespace = ns
	d.Spec.Template.Spec.Containers[0].EnvFrom = append(d.Spec.Template.Spec.Containers[0].EnvFrom,
		corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "used"}}},
		corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}})
	noise := &corev1.ConfigMap{ObjectMeta: meta("app"), Data: map[string]string{"a": random(t)}}
	quiet := &corev1.Secret{ObjectMeta: meta("quiet"), Data: map[string][]byte{"a": []byte(random(t))}}
	for _, obj := range []client.Object{
		quiet, &corev1.Secret{ObjectMeta: meta("used"), Data: map[string][]byte{"password": []byte(values["used"])}},
		&corev1.Secret{ObjectMeta: meta("unused"), Data: map[string][]byte{"password": []byte(values["unused"])}},
		&corev1.ConfigMap{ObjectMeta: meta("config"), Data: map[string]string{"a": values["config"]}}, noise, d,
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	pid := started(t, ns)
	before := hashed(t, c, d, "")
	testenv.Eventually(t, func(context.Context) error {
		// A connection keeps what it received last until it receives more.
		noise.Data["a"], quiet.Data["a"] = strings.Repeat(random(t), 1000), []byte(strings.Repeat(random(t), 1000))
		if err := errors.Join(c.Update(t.Context(), noise), c.Update(t.Context(), quiet)); err != nil {
			return err
		}
		before = hashed(t, c, d, before)
		return holdsNone(pid, values)
	})
}

func random(t *testing.T) string {
	t.Helper()
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(raw)
}

// started runs a manager in a process of its own, with the environment that is installed.
func started(t *testing.T, namespace string) (pid int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self) //nolint:gosec,noctx // this program; it ends with its input
	cmd.Env = []string{childOf + "=" + namespace, "KUBECONFIG=" + testenv.Shared().Kubeconfig(), "GOGC=10", "HOME=" + t.TempDir()}
	for name, value := range manifests.Environment() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	})
	return cmd.Process.Pid
}

// hashed waits until the workload has another hash than before.
func hashed(t *testing.T, c client.Client, d *appsv1.Deployment, before string) string {
	t.Helper()
	hash := ""
	testenv.Eventually(t, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		if hash = d.Spec.Template.Annotations["spillway.dev/config-hash"]; hash == "" || hash == before {
			return errors.New("no new hash")
		}
		return nil
	})
	return hash
}

// holdsNone is an error if the memory of a process has one of the values, as it is or as
// the API server sends it.
func holdsNone(pid int, values map[string]string) error {
	found := map[string]int{}
	err := eachPart(pid, func(part []byte) {
		for name, value := range values {
			found[name] += bytes.Count(part, []byte(value))
			found[name] += bytes.Count(part, []byte(base64.StdEncoding.EncodeToString([]byte(value))))
		}
	})
	if err != nil {
		return err
	}
	for name, n := range found {
		if n > 0 {
			return fmt.Errorf("the value %s is in memory %d times (%v)", name, n, found)
		}
	}
	return nil
}

// eachPart reads what a process may write to.
func eachPart(pid int, visit func([]byte)) error {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	defer func() { _ = maps.Close() }()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	defer func() { _ = memory.Close() }()
	read := 0
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uint64
		var mode string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); err != nil {
			return err
		}
		if !strings.HasPrefix(mode, "rw") {
			continue
		}
		part := make([]byte, to-from)
		n, err := memory.ReadAt(part, int64(from)) //nolint:gosec // what may be written to is in the lower half
		if err == nil {
			visit(part)
			read += n
		}
	}
	if read == 0 {
		return errors.New("no memory could be read")
	}
	return nil
}
