package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
)

// cluster are the flags that say which cluster is meant.
type cluster struct {
	kubeconfig, context, namespace string
}

func (c *cluster) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "path of the kubeconfig (default: $KUBECONFIG, ~/.kube/config, or the cluster that this runs in)")
	flags.StringVar(&c.context, "context", "", "context of the kubeconfig (default: its current one)")
}

func (c *cluster) addNamespaceFlag(flags *pflag.FlagSet) {
	flags.StringVarP(&c.namespace, "namespace", "n", "", "namespace (default: that of the context)")
}

// given are the flags as they were given, for the commands that come next.
func (c *cluster) given() []string {
	var words []string
	if c.kubeconfig != "" {
		words = append(words, "--kubeconfig", quoted(c.kubeconfig))
	}
	if c.context != "" {
		words = append(words, "--context", quoted(c.context))
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

func (c *cluster) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.context})
}

// config is the client's configuration for the cluster that was meant.
func (c *cluster) config() (*rest.Config, error) {
	config, err := c.loader().ClientConfig()
	if err != nil {
		return nil, unusable(err)
	}
	config.QPS = -1
	return config, nil
}

// reader is a client for a command that looks.
func (c *cluster) reader() (client.Client, error) { return c.watcher() }

// watcher is a client for a command that looks on.
func (c *cluster) watcher() (client.WithWatch, error) {
	config, err := c.config()
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

// version is that of the API server.
func (c *cluster) version() (string, error) {
	config, err := c.config()
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

// namespaced is the namespace that was meant.
func (c *cluster) namespaced() (string, error) {
	if c.namespace != "" {
		return c.namespace, nil
	}
	namespace, _, err := c.loader().Namespace()
	if err != nil {
		return "", unusable(err)
	}
	return namespace, nil
}

// unusable says what is wrong with a kubeconfig.
func unusable(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errors.New("no cluster to talk to: name a kubeconfig with --kubeconfig or $KUBECONFIG")
	}
	return fmt.Errorf("kubeconfig: %w", err)
}
