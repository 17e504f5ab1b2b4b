package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetcluster "github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/nearest"
	"github.com/spillway-dev/spillway/internal/shell"
)

// Cluster are the flags that say which cluster is meant, and who asks.
type Cluster struct {
	Kubeconfig, Context, Namespace string
	// overrides are what the flags of kubectl say instead of the kubeconfig.
	overrides clientcmd.ConfigOverrides
	flags     *pflag.FlagSet
	// as is the user to act as, whatever the flags say; nil is none.
	as *rest.ImpersonationConfig
}

// ActAs makes all clients act as a user with her groups.
func (c *Cluster) ActAs(user string, groups []string) error {
	if user == "" { // without a name, clients would act as who runs the program
		return errors.New("there is no user to act as")
	}
	c.as = &rest.ImpersonationConfig{UserName: user, Groups: groups}
	return nil
}

// ConnectionFlags is the annotation of flags that are the same as those of kubectl.
const ConnectionFlags = "spillway.dev/connection-flag"

// AddFlags adds the flags that name a cluster, and those of kubectl that say how to
// connect to it.
func (c *Cluster) AddFlags(flags *pflag.FlagSet) {
	c.AddKubeconfigFlags(flags)
	c.flags = flags
	like := clientcmd.RecommendedConfigOverrideFlags("")
	like.CurrentContext, like.ContextOverrideFlags = clientcmd.FlagInfo{}, clientcmd.ContextOverrideFlags{}
	like.ClusterOverrideFlags.ProxyURL, like.ClusterOverrideFlags.DisableCompression = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	like.AuthOverrideFlags.Username, like.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	mine := pflag.NewFlagSet("", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(&c.overrides, mine, like)
	mine.VisitAll(func(f *pflag.Flag) {
		f.Usage = connectionUsage[f.Name]
		f.Annotations = map[string][]string{ConnectionFlags: {"true"}}
	})
	flags.AddFlagSet(mine)
}

var connectionUsage = map[string]string{
	clientcmd.FlagImpersonate:      "user to act as",
	clientcmd.FlagImpersonateGroup: "group to act as; repeat it for several",
	clientcmd.FlagImpersonateUID:   "UID to act as",
	clientcmd.FlagAPIServer:        "address of the API server",
	clientcmd.FlagCAFile:           "path of the certificate of the API server's authority",
	clientcmd.FlagCertFile:         "path of the client certificate",
	clientcmd.FlagKeyFile:          "path of the client key",
	clientcmd.FlagInsecure:         "do not verify the API server's certificate, which makes the connection insecure",
	clientcmd.FlagTLSServerName:    "name to verify the API server's certificate by (default: its host)",
	clientcmd.FlagBearerToken:      "bearer token to authenticate with",
	clientcmd.FlagTimeout:          "how long a request may take, such as 5s; 0 is no limit",
}

// AddKubeconfigFlags adds the flags that name a cluster, and no others.
func (c *Cluster) AddKubeconfigFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "path of the kubeconfig (default: $KUBECONFIG, ~/.kube/config, or the cluster that this runs in)")
	flags.StringVar(&c.Context, "context", "", "context of the kubeconfig (default: its current one)")
}

// AddNamespacedFlags is [Cluster.AddFlags], with the flag that names a namespace.
func (c *Cluster) AddNamespacedFlags(flags *pflag.FlagSet) {
	c.AddFlags(flags)
	flags.StringVarP(&c.Namespace, "namespace", "n", "", "namespace (default: that of the context)")
}

// Connects is the first flag that was given which says how to connect, "" without one.
func (c *Cluster) Connects() string {
	first := ""
	c.flags.Visit(func(f *pflag.Flag) {
		if connects(f) && first == "" {
			first = f.Name
		}
	})
	return first
}

// Take sets the flags as they were given to a command.
func (c *Cluster) Take(given *pflag.FlagSet) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.AddNamespacedFlags(flags)
	CopyFlags(flags, given)
}

// CopyFlags sets flags as others were given that have their names and types.
func CopyFlags(to, given *pflag.FlagSet) {
	given.Visit(func(f *pflag.Flag) {
		mine := to.Lookup(f.Name)
		if mine == nil || mine.Value.Type() != f.Value.Type() {
			return
		}
		if several, ok := mine.Value.(pflag.SliceValue); ok {
			mine.Changed = true
			_ = several.Replace(Values(f)) // it was accepted before
			return
		}
		_ = to.Set(f.Name, f.Value.String()) // the same
	})
}

// Given are the flags that say which cluster is meant and how to connect to it, as they were given, each with its value.
func (c *Cluster) Given() (args []string) {
	c.flags.Visit(func(f *pflag.Flag) {
		if connects(f) {
			for _, value := range Values(f) {
				args = append(args, "--"+f.Name+"="+value)
			}
		}
	})
	return args
}

func connects(f *pflag.Flag) bool {
	return f.Annotations[ConnectionFlags] != nil || f.Name == "kubeconfig" || f.Name == "context"
}

// Words are the flags as they were given, for the commands that come next, but for secrets.
func (c *Cluster) Words() []string {
	var words []string
	if c.Kubeconfig != "" {
		words = append(words, "--kubeconfig", shell.Quote(c.Kubeconfig))
	}
	if c.Context != "" {
		words = append(words, "--context", shell.Quote(c.Context))
	}
	if c.flags == nil {
		return words
	}
	c.flags.Visit(func(f *pflag.Flag) {
		if f.Annotations[ConnectionFlags] != nil && f.Name != clientcmd.FlagBearerToken {
			for _, value := range Values(f) {
				words = append(words, "--"+f.Name+"="+shell.Quote(value))
			}
		}
	})
	return words
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
	if strings.ContainsAny(c.Namespace, "/, ") { // of what could be one, the API server knows whether it exists
		return "", fmt.Errorf("--namespace: %q cannot be a namespace; use lower-case letters, digits and -", c.Namespace)
	}
	if c.Namespace != "" {
		return c.Namespace, nil
	}
	namespace, _, err := c.Loader().Namespace()
	if err != nil {
		return "", c.unusable(err)
	}
	return namespace, nil
}

// NamespaceOffline is the namespace that was meant, the default one where there is no
// kubeconfig and none was named.
func (c *Cluster) NamespaceOffline() (string, error) {
	namespace, err := c.ResolveNamespace()
	if err != nil && c.Namespace == "" && c.Kubeconfig == "" && c.Context == "" {
		return metav1.NamespaceDefault, nil
	}
	return namespace, err
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
	return ClientFor(config)
}

// ClientFor returns a client that knows the kinds of the rings.
func ClientFor(config *rest.Config) (client.WithWatch, error) {
	known, err := kube.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: known})
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
	return ClientFor(config)
}

// Connect returns a client for the cluster that was meant, and the namespace.
func (c *Cluster) Connect() (client.WithWatch, string, error) {
	namespace, err := c.ResolveNamespace()
	if err != nil {
		return nil, "", err
	}
	connected, err := c.Client()
	return connected, namespace, err
}

// RESTConfig is the client's configuration for the cluster that was meant.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	if to := &c.overrides.ClusterInfo; to.InsecureSkipTLSVerify && to.CertificateAuthority != "" {
		return nil, fmt.Errorf("--%s and --%s contradict each other; leave one out", clientcmd.FlagCAFile, clientcmd.FlagInsecure)
	}
	config, err := c.Loader().ClientConfig()
	if err != nil {
		return nil, c.unusable(err)
	}
	if at, _, err := rest.DefaultServerUrlFor(config); err != nil || !canBeAsked(at) {
		return nil, fmt.Errorf("%q is not the address of an API server; name one such as https://10.0.0.1:6443 with --server, or in the kubeconfig", config.Host)
	}
	if err := c.unknownUser(config); err != nil {
		return nil, err
	}
	config.QPS = -1
	if c.as != nil {
		config.Impersonate = *c.as
	}
	return config, nil
}

// canBeAsked is true of an address by which a server can be asked at all.
func canBeAsked(at *url.URL) bool {
	_, err := strconv.ParseUint(cmp.Or(at.Port(), "0"), 10, 16)
	return slices.Contains([]string{"http", "https"}, at.Scheme) && err == nil
}

// unknownUser is an error if the kubeconfig has no user of the name that the context says, and
// no flag says who asks: kubectl goes on as an anonymous user then.
func (c *Cluster) unknownUser(config *rest.Config) error {
	raw, err := c.Loader().RawConfig()
	if err != nil || config.BearerToken != "" || config.CertFile != "" || len(config.CertData) > 0 {
		return nil //nolint:nilerr // there is none inside a cluster
	}
	name := cmp.Or(c.Context, raw.CurrentContext)
	used := raw.Contexts[name]
	if used == nil || used.AuthInfo == "" || raw.AuthInfos[used.AuthInfo] != nil {
		return nil
	}
	return fmt.Errorf("kubeconfig: context %s names user %q, which is not in the file; name another with: kubectl config set-context %s --user=NAME", name, used.AuthInfo, shell.Quote(name))
}

// Loader returns what reads the kubeconfig.
func (c *Cluster) Loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	overrides := c.overrides
	overrides.CurrentContext = c.Context
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
}

func (c *Cluster) unusable(err error) error {
	if t := c.overrides.Timeout; t != "" {
		if _, failed := clientcmd.ParseTimeout(t); failed != nil {
			return fmt.Errorf("--%s: %s", clientcmd.FlagTimeout, notDuration(t))
		}
	}
	if missing := c.missingFile(); missing != nil {
		return missing
	}
	if who := &c.overrides.AuthInfo; who.ClientCertificate != "" && who.ClientKey == "" {
		return fmt.Errorf("--%s: name its key too, with --%s", clientcmd.FlagCertFile, clientcmd.FlagKeyFile)
	}
	if who := &c.overrides.AuthInfo; who.Impersonate == "" && (len(who.ImpersonateGroups) > 0 || who.ImpersonateUID != "") {
		return errors.New("--as: name the user too, to act as a group or UID")
	}
	raw, failed := c.Loader().RawConfig()
	switch {
	case errors.Is(failed, fs.ErrNotExist):
		return fmt.Errorf("kubeconfig %s not found: name another with --kubeconfig or $KUBECONFIG", c.Kubeconfig)
	case failed != nil:
		return fmt.Errorf("kubeconfig: %s; name another with --kubeconfig or $KUBECONFIG", invalid(failed))
	case c.Context != "" && raw.Contexts[c.Context] == nil:
		return unknownContext("--context: ", c.Context, slices.Sorted(maps.Keys(raw.Contexts)))
	}
	return c.incomplete(&raw, err)
}

func (c *Cluster) incomplete(raw *clientcmdapi.Config, err error) error {
	contexts := slices.Sorted(maps.Keys(raw.Contexts))
	name := cmp.Or(c.Context, raw.CurrentContext)
	used := raw.Contexts[name]
	switch {
	case len(raw.Contexts) == 0 && len(raw.Clusters) == 0:
		return c.noCluster()
	case name == "" && len(contexts) > 0:
		return fmt.Errorf("the kubeconfig has no current context: name one with --context; choose from %s", strings.Join(contexts, ", "))
	case name != "" && used == nil:
		return unknownContext("current-context: ", name, contexts)
	case used != nil && raw.Clusters[used.Cluster] == nil:
		return fmt.Errorf("kubeconfig: context %s names cluster %q, which is not in the file; correct it, or choose another with --context", name, used.Cluster)
	case clientcmd.IsEmptyConfig(err):
		return c.noCluster()
	}
	return fmt.Errorf("kubeconfig: %w", err)
}

func (c *Cluster) noCluster() error {
	const action = "name a kubeconfig with --kubeconfig or $KUBECONFIG"
	switch variable := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); {
	case c.Kubeconfig != "":
		return fmt.Errorf("no cluster: kubeconfig %s names none; name another with --kubeconfig or $KUBECONFIG", c.Kubeconfig)
	case variable != "":
		return fmt.Errorf("no cluster: $KUBECONFIG is %s, which does not exist or names none; %s", variable, action)
	default:
		return errors.New("no cluster: ~/.kube/config does not exist or names none; " + action)
	}
}

func (c *Cluster) missingFile() error {
	for _, file := range []struct{ flag, path string }{
		{clientcmd.FlagCAFile, c.overrides.ClusterInfo.CertificateAuthority},
		{clientcmd.FlagCertFile, c.overrides.AuthInfo.ClientCertificate},
		{clientcmd.FlagKeyFile, c.overrides.AuthInfo.ClientKey},
	} {
		if _, err := os.Stat(file.path); file.path != "" && err != nil {
			return fmt.Errorf("--%s: %s cannot be read; name a file that exists", file.flag, file.path)
		}
	}
	return nil
}

// couldNotLoad is how the library says that a kubeconfig cannot be read.
var couldNotLoad = regexp.MustCompile(`error loading config file "([^"]*)": (.*)`)

// invalid says which file is no kubeconfig. Of what the decoder says the first words are
// enough: the others are about types of Go.
func invalid(err error) string {
	m := couldNotLoad.FindStringSubmatch(err.Error())
	if m == nil {
		return err.Error()
	}
	switch why := m[2]; {
	case strings.Contains(why, "permission denied"):
		return m[1] + " may not be read: permission denied"
	case strings.Contains(why, "is a directory"):
		return m[1] + " is a directory"
	}
	if at := yamlLine.FindStringSubmatch(m[2]); at != nil {
		return fmt.Sprintf("%s:%s is not valid YAML: %s", m[1], at[1], at[2])
	}
	return m[1] + " is not a kubeconfig"
}

// yamlLine is how the library says where a file is no YAML.
var yamlLine = regexp.MustCompile(`yaml: line (\d+): (.*)$`)

// unknownContext says which contexts there are, and after a lead where the name is from.
func unknownContext(lead, name string, known []string) error {
	if near := nearest.Meant(name, known); near != "" {
		return fmt.Errorf("%s%q not found in the kubeconfig; did you mean %s?", lead, name, near)
	}
	if len(known) == 0 {
		return fmt.Errorf("%s%q not found in the kubeconfig, which has no contexts", lead, name)
	}
	return fmt.Errorf("%s%q not found in the kubeconfig; choose from %s", lead, name, strings.Join(known, ", "))
}
