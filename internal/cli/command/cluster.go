package command

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetcluster "github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/kube"
)

// Cluster are the flags that say which cluster is meant.
type Cluster struct {
	Kubeconfig, Context, Namespace string
}

// AddFlags adds the flags that name a cluster.
func (c *Cluster) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "path of the kubeconfig (default: $KUBECONFIG, ~/.kube/config, or the cluster that this runs in)")
	flags.StringVar(&c.Context, "context", "", "context of the kubeconfig (default: its current one)")
}

// AddNamespaceFlag adds the flag that names a namespace.
func (c *Cluster) AddNamespaceFlag(flags *pflag.FlagSet) {
	flags.StringVarP(&c.Namespace, "namespace", "n", "", "namespace (default: that of the context)")
}

// Words are the flags as they were given, for the commands that come next.
func (c *Cluster) Words() []string {
	var words []string
	if c.Kubeconfig != "" {
		words = append(words, "--kubeconfig", quoted(c.Kubeconfig))
	}
	if c.Context != "" {
		words = append(words, "--context", quoted(c.Context))
	}
	return words
}

// plainWord is a word that a shell takes as it stands.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ServerVersion is that of the API server.
func (c *Cluster) ServerVersion() (string, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return "", err
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("connect to the cluster: %w", err)
	}
	info, err := asked.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("ask the API server for its version: %w", err)
	}
	return info.GitVersion, nil
}

// ResolveNamespace is the namespace that was meant.
func (c *Cluster) ResolveNamespace() (string, error) {
	if c.Namespace != "" {
		return c.Namespace, nil
	}
	namespace, _, err := c.Loader().Namespace()
	if err != nil {
		return "", unusable(err)
	}
	return namespace, nil
}

// RESTMapper knows all kinds of the cluster, by their short names too.
func (c *Cluster) RESTMapper() (apimeta.RESTMapper, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	known := memory.NewMemCacheClient(asked)
	return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(known), known, nil), nil
}

// Dial connects to a cluster of the fleet.
func Dial(kubeconfig []byte) (client.Client, error) {
	config, err := fleetcluster.ClientConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	known, err := kube.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}

// Client returns a client for the cluster that was meant.
func (c *Cluster) Client() (client.WithWatch, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	known, err := kube.NewScheme()
	if err != nil {
		return nil, err
	}
	watcher, err := client.NewWithWatch(config, client.Options{Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return watcher, nil
}

// RESTConfig is the client's configuration for the cluster that was meant.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := c.Loader().ClientConfig()
	if err != nil {
		return nil, unusable(err)
	}
	config.QPS = -1
	return config, nil
}

// Loader returns what reads the kubeconfig.
func (c *Cluster) Loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context})
}

// unusable says what is wrong with a kubeconfig.
func unusable(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errors.New("no cluster: name a kubeconfig with --kubeconfig or $KUBECONFIG")
	}
	return fmt.Errorf("kubeconfig: %w", err)
}
