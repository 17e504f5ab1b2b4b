package cluster

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/spillway-dev/spillway/internal/message"
)

const (
	// dialTimeout is how long it may take to connect to a cluster.
	dialTimeout = 5 * time.Second
	// userAgent is sent to the API server of a cluster.
	userAgent = "spillway-fleet"
)

// InvalidError says what is wrong with a kubeconfig. Only another content fixes it.
type InvalidError struct{ Reason string }

// Error implements error.
func (e *InvalidError) Error() string { return "invalid kubeconfig: " + e.Reason }

// ClientConfig makes a client's configuration of a kubeconfig, for callers that connect once
// and have no [Registry]. It refuses one that would run programs or read files.
func ClientConfig(kubeconfig []byte) (*rest.Config, error) { return configOf(kubeconfig, nil) }

// configOf makes a client's configuration of a kubeconfig. Errors never contain any
// of it. The network restricts where it leads, unless it is nil.
func configOf(kubeconfig []byte, network *Network) (*rest.Config, error) {
	if len(kubeconfig) == 0 {
		return nil, &InvalidError{fmt.Sprintf("the Secret has no key %q", KubeconfigKey)}
	}
	raw, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, &InvalidError{"not a kubeconfig"}
	}
	if err := permitted(raw, network); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	if err != nil {
		return nil, &InvalidError{"its current context is incomplete, or names a cluster or a user that it does not have"}
	}
	config.QPS, config.UserAgent = -1, userAgent
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	if network != nil {
		dialer.ControlContext = network.control
	}
	config.Dial = dialer.DialContext
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return config, nil
}

// permitted refuses what would run programs or read files where the manager runs, or lead
// around the network.
func permitted(k *clientcmdapi.Config, network *Network) error {
	for _, name := range slices.Sorted(maps.Keys(k.AuthInfos)) {
		switch user := k.AuthInfos[name]; {
		case user.Exec != nil || user.AuthProvider != nil:
			return &InvalidError{fmt.Sprintf("user %s runs a program; use a token or a certificate", message.Quote(name))}
		case user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "":
			return &InvalidError{fmt.Sprintf("user %s refers to files; put their content into the kubeconfig", message.Quote(name))}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Clusters)) {
		if network != nil && k.Clusters[name].ProxyURL != "" {
			return &InvalidError{fmt.Sprintf("cluster %s names a proxy, which the hub does not use; remove proxy-url", message.Quote(name))}
		}
		if k.Clusters[name].CertificateAuthority != "" {
			return &InvalidError{fmt.Sprintf("cluster %s refers to a file; put its content into the kubeconfig", message.Quote(name))}
		}
	}
	return nil
}
