package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
)

// SharedVariable names the socket at which another process hands out its control plane.
// What changes from run to run is said at the socket and not in the environment: go test
// remembers results by the variables that a test has read.
const SharedVariable = "SPILLWAY_TEST_SOCKET"

// handout is what another process needs to use a control plane.
type handout struct {
	Dir      string `json:"dir"`
	Assets   string `json:"assets"`
	Token    string `json:"token"`
	EtcdPort int    `json:"etcdPort"`
	APIPort  int    `json:"apiPort"`
	Nodes    int    `json:"nodes"`
	// Err says why there is none.
	Err string `json:"err,omitempty"`
}

// HandOut answers each process that asks at the socket, until the listener is closed.
// It calls start for each.
func HandOut(socket net.Listener, start func() (*ControlPlane, error)) {
	for {
		conn, err := socket.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			if err := json.NewEncoder(conn).Encode(handoutOf(start())); err != nil {
				return // the process that asked has ended
			}
		}()
	}
}

func handoutOf(cp *ControlPlane, err error) handout {
	if err != nil {
		return handout{Err: err.Error()}
	}
	return handout{Dir: cp.Dir, Assets: cp.assets, Token: cp.token, EtcdPort: cp.etcdPort, APIPort: cp.apiPort, Nodes: cp.options.Nodes}
}

// StartOrShare returns the control plane that another process hands out, if the environment
// names its socket and the options allow it, and starts one otherwise. [ControlPlane.Stop] ends only what this process
// has started.
func StartOrShare(ctx context.Context, options Options) (*ControlPlane, error) {
	socket := os.Getenv(SharedVariable)
	if socket == "" || options.Alone || os.Getenv(ExistingVariable) != "" {
		return Start(ctx, options)
	}
	cp, err := ask(ctx, socket)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", SharedVariable, socket, err)
	}
	if cp.options.Nodes < options.Nodes {
		return nil, fmt.Errorf("%s=%s has %d nodes, and %d are needed", SharedVariable, socket, cp.options.Nodes, options.Nodes)
	}
	return cp, nil
}

func ask(ctx context.Context, socket string) (*ControlPlane, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says of what
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var h handout
	if err := json.NewDecoder(conn).Decode(&h); err != nil {
		return nil, err //nolint:wrapcheck // the same
	}
	if h.Err != "" {
		return nil, errors.New(h.Err)
	}
	cp := &ControlPlane{
		Dir: h.Dir, Shared: true, options: Options{Nodes: h.Nodes}, assets: h.Assets, token: h.Token, etcdPort: h.EtcdPort, apiPort: h.APIPort,
	}
	return cp, cp.loadConfig()
}
