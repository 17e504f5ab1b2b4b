package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ExistingVariable names the kubeconfig of a cluster to use instead of starting one.
const ExistingVariable = "SPILLWAY_TEST_KUBECONFIG"

// startTimeout bounds how long everything may take to be ready, on a machine that has
// much else to do.
const startTimeout = 3 * time.Minute

// Options say what to start.
type Options struct {
	// Nodes is how many nodes kwok plays, spread over the zones zone-a, zone-b
	// and zone-c. With none there are neither nodes, scheduler nor kwok, and Pods
	// stay pending.
	Nodes int
	// Scheduler starts a scheduler also without these nodes, for a real one that joins.
	Scheduler bool
	// Alone has [StartOrShare] start one in any case.
	Alone bool
	// Stay leaves everything running when this process ends; [StopAt] ends it.
	Stay bool
	// Progress gets a line for each thing that is built or started; nil discards them.
	Progress io.Writer
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Dir holds the kubeconfig, the data and the logs, one file a program.
	// It is empty for an existing cluster.
	Dir string
	// Shared is true if another process has started it, and other tests use it.
	Shared bool

	options Options
	assets  string
	token   string
	// prefix is that of everything that the API server keeps in etcd.
	prefix string
	// beside are the API servers that [ControlPlane.Beside] has started.
	beside   []*ControlPlane
	besideMu sync.Mutex
	// alone is true without controllers.
	alone     bool
	etcdPort  int
	peerPort  int
	apiPort   int
	etcd, api *process
	others    []*process
	// forPods are those of the others by which Pods come to run.
	forPods []*process
	config  *rest.Config
}

// Start starts a control plane and waits until it is ready to use.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if path := os.Getenv(ExistingVariable); path != "" {
		return existing(path)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout+15*time.Minute) // the build is included
	defer cancel()
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	assets, err := Assets(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{options: options, assets: assets, token: random(), prefix: "/registry"}
	if err := cp.start(ctx); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

func existing(path string) (*ControlPlane, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ExistingVariable, err)
	}
	config.QPS = -1
	return &ControlPlane{config: config}, nil
}

func (cp *ControlPlane) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	steps := []func(context.Context) error{cp.prepare, cp.startEtcd, cp.StartAPIServer, cp.startControllers}
	if cp.options.Nodes > 0 || cp.options.Scheduler {
		steps = append(steps, cp.startScheduler)
	}
	if cp.options.Nodes > 0 {
		steps = append(steps, cp.startNodes)
	}
	for _, step := range append(steps, cp.waitUsable) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (cp *ControlPlane) startEtcd(ctx context.Context) error {
	client, peer := localURL("http", cp.etcdPort), localURL("http", cp.peerPort)
	p, err := cp.run("etcd",
		"--data-dir", cp.path("etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer,
	)
	if err != nil {
		return err
	}
	cp.etcd = p
	return cp.until(ctx, func() bool { return answers(client + "/health") }, p)
}

// StartAPIServer starts the API server, or starts it again on the same port.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error {
	args := []string{
		"--etcd-servers", localURL("http", cp.etcdPort), "--etcd-prefix", cp.prefix,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(cp.apiPort), "--cert-dir", cp.path("certificates"),
		"--token-auth-file", cp.path("token.csv"), "--authorization-mode", "RBAC",
		"--service-account-issuer", "https://spillway.test",
		"--service-account-key-file", cp.path("service-account.key"),
		"--service-account-signing-key-file", cp.path("service-account.key"),
		"--service-cluster-ip-range", "10.0.0.0/24",
		"--endpoint-reconciler-type", "none",
		"--max-requests-inflight", "0", "--max-mutating-requests-inflight", "0", "--enable-priority-and-fairness=false",
	}
	if cp.alone { // no controller creates the ServiceAccounts that it would require
		args = append(args, "--disable-admission-plugins", "ServiceAccount")
	}
	p, err := startWith(cp.Dir, filepath.Join(cp.assets, "kube-apiserver"), cp.options.Stay, collecting(), args...)
	if err != nil {
		return err
	}
	cp.api = p
	return errors.Join(cp.until(ctx, cp.ready, p), cp.writeKubeconfigs(), cp.restartForPods())
}

// collecting has the API server collect garbage more often where CI has it collected seldom: it
// keeps all namespaces of a run, and 1.0 instead of 1.6 GB for the same CPU.
func collecting() []string {
	if os.Getenv("GOGC") == "" {
		return nil
	}
	return []string{"GOGC=300"}
}

// StopAPIServer makes the API server go away in the middle of what it does.
func (cp *ControlPlane) StopAPIServer() { cp.api.kill() }

func (cp *ControlPlane) ready() bool {
	if cp.loadConfig() != nil {
		return false
	}
	c, err := rest.HTTPClientFor(cp.config)
	if err != nil {
		return false
	}
	res, err := c.Get(cp.config.Host + "/readyz")
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	return res.StatusCode == http.StatusOK
}

// loadConfig makes the client's configuration once the API server has written
// the certificate that it serves with.
func (cp *ControlPlane) loadConfig() error {
	ca, err := os.ReadFile(cp.path("certificates/apiserver.crt"))
	if err != nil {
		return fmt.Errorf("certificate of the API server: %w", err)
	}
	cp.config = &rest.Config{
		Host:            localURL("https", cp.apiPort),
		BearerToken:     cp.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		QPS:             -1,
	}
	return nil
}

func (cp *ControlPlane) startControllers(context.Context) error {
	p, err := cp.run("kube-controller-manager",
		"--kubeconfig", cp.Kubeconfig(), "--secure-port", "0", "--leader-elect=false",
		"--service-account-private-key-file", cp.path("service-account.key"),
		"--kube-api-qps", "2000", "--kube-api-burst", "4000",
		"--concurrent-deployment-syncs", "10", "--concurrent-replicaset-syncs", "10", "--concurrent-statefulset-syncs", "10",
		// Nodes send no heartbeats; without this every Pod would turn not ready.
		"--node-monitor-grace-period", "1000h",
	)
	cp.keep(p)
	return err
}

func (cp *ControlPlane) startNodes(ctx context.Context) error {
	if err := errors.Join(cp.createNodes(ctx), cp.limitKwok(ctx)); err != nil {
		return err
	}
	return cp.startForPods("kwok", "--kubeconfig", cp.kwokKubeconfig(), "--config", cp.path("stages.yaml"),
		"--manage-all-nodes=false", "--manage-nodes-with-label-selector", played, "--node-lease-duration-seconds", "0")
}

func (cp *ControlPlane) startScheduler(context.Context) error {
	return cp.startForPods("kube-scheduler", "--kubeconfig", cp.Kubeconfig(), "--secure-port", "0", "--leader-elect=false",
		"--kube-api-qps", "2000", "--kube-api-burst", "4000")
}

// restartForPods starts them again: what fails while there is no API server, they
// may try again only minutes later, or never.
func (cp *ControlPlane) restartForPods() error {
	for _, p := range cp.forPods {
		p.kill()
	}
	cp.others = slices.DeleteFunc(cp.others, func(p *process) bool { return slices.Contains(cp.forPods, p) })
	former := cp.forPods
	cp.forPods = nil
	var errs []error
	for _, p := range former {
		errs = append(errs, cp.startForPods(p.name, p.cmd.Args[1:]...))
	}
	return errors.Join(errs...)
}

// startForPods starts a program by which Pods come to run.
func (cp *ControlPlane) startForPods(name string, args ...string) error {
	p, err := cp.run(name, args...)
	cp.keep(p)
	if p != nil {
		cp.forPods = append(cp.forPods, p)
	}
	return err
}

func (cp *ControlPlane) run(name string, args ...string) (*process, error) {
	return start(cp.Dir, filepath.Join(cp.assets, name), cp.options.Stay, args...)
}

// Run runs a further program beside the control plane, which ends with it.
func (cp *ControlPlane) Run(path string, args ...string) error {
	return cp.RunWith(nil, path, args...)
}

// RunWith is Run with further variables of the environment, as NAME=VALUE.
func (cp *ControlPlane) RunWith(env []string, path string, args ...string) error {
	p, err := startWith(cp.Dir, path, cp.options.Stay, env, args...)
	cp.keep(p)
	return err
}

func (cp *ControlPlane) keep(p *process) {
	if p != nil {
		cp.others = append(cp.others, p)
	}
}

// until waits for a condition while a process lives.
func (cp *ControlPlane) until(ctx context.Context, done func() bool, watched ...*process) error {
	for !done() {
		if err := allAlive(watched); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			last := watched[len(watched)-1]
			return fmt.Errorf("%s is not ready: %w; it says: %s", last.name, ctx.Err(), last.tail())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return allAlive(watched) // what answered was not another process on the same port
}

func allAlive(processes []*process) error {
	var errs []error
	for _, p := range processes {
		errs = append(errs, p.alive())
	}
	return errors.Join(errs...)
}

// ConfigAs is the configuration of a client that impersonates a user.
func (cp *ControlPlane) ConfigAs(user string, groups ...string) *rest.Config {
	config := cp.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}

// Config is the configuration of a client with all rights and no rate limit.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.config) }

// Kubeconfig is the path of a kubeconfig with all rights.
func (cp *ControlPlane) Kubeconfig() string {
	if cp.Dir == "" {
		return os.Getenv(ExistingVariable)
	}
	return cp.path("kubeconfig")
}

// Clientset is a client with all rights.
func (cp *ControlPlane) Clientset() (*kubernetes.Clientset, error) {
	c, err := kubernetes.NewForConfig(cp.config)
	if err != nil {
		return nil, fmt.Errorf("client of the control plane: %w", err)
	}
	return c, nil
}

// Stop ends everything that was started and removes its folder.
func (cp *ControlPlane) Stop() error {
	var errs []error
	for _, b := range cp.beside {
		errs = append(errs, b.Stop())
	}
	for _, p := range append(cp.others, cp.api, cp.etcd) {
		if p != nil {
			p.stop()
		}
	}
	if cp.Dir == "" || cp.Shared {
		return errors.Join(errs...)
	}
	if err := os.RemoveAll(cp.Dir); err != nil {
		errs = append(errs, fmt.Errorf("remove the control plane's folder: %w", err))
	}
	return errors.Join(errs...)
}

func localURL(scheme string, port int) string {
	return scheme + "://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

func answers(url string) bool {
	res, err := http.Get(url)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	return res.StatusCode == http.StatusOK
}
