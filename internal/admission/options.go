package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The names of what is installed for the server.
const (
	// ServiceName is the Service by which API servers find it.
	ServiceName = "spillway-webhooks"
	// SecretName is the Secret of its certificate, from any source.
	SecretName = "spillway-webhooks-certificate"
	// KeysSecretName is the Secret of the keys in the paths, where another program fills
	// that of the certificate.
	KeysSecretName = "spillway-webhooks-keys"
	// Port is where it serves in a Pod.
	Port = 9443
)

// ManagedByLabel is, with this value, on a Secret that the manager has made.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "spillway-manager"
)

// ConfigurationName is the name of a ring's webhook configurations. Managers in
// two namespaces share none.
func ConfigurationName(namespace, ring string) string {
	return namespace + "." + ring + ".spillway.dev"
}

// Source is where the server's certificate comes from.
type Source string

// The sources of certificates.
const (
	// Generated certificates are made by the manager and kept in a Secret.
	Generated Source = "generated"
	// CertManager mounts a Secret that cert-manager fills, and leaves our own
	// webhook configurations to its CA injector.
	CertManager Source = "cert-manager"
	// Files are in a folder that another program fills.
	Files Source = "files"
)

// Options are the manager's choices for the server.
type Options struct {
	// Enabled is true if the webhooks are served.
	Enabled bool
	// Address is where to serve, such as ":9443".
	Address string
	// Hosts are the names or IP addresses by which the API server calls; the
	// certificate must cover them all. The default is that of the Service.
	Hosts []string
	// Namespace is the manager's own.
	Namespace string
	// Source is where the certificate comes from; the default is Generated.
	Source Source
	// SecretName is the Secret of a generated certificate; it has a default.
	SecretName string
	// CertDir has tls.crt, tls.key and, if its CA is to be injected, ca.crt; for
	// the other sources.
	CertDir string
	// ClientCA is a file with the CAs that have signed the certificates with which API servers
	// show who they are, if they are configured to. Then they need no key. Empty is none.
	ClientCA string
	// ClientNames are the common names of these certificates. With none, each
	// certificate counts that the CAs have signed.
	ClientNames []string
	// Own are the names of our own webhook configurations. The manager sets them
	// to those of the rings that it runs, unless they are given.
	Own []string
	// Only restricts the webhook configurations of users that are watched to
	// these names. With none, all are that carry the labels.
	Only []string
	// Now is the clock.
	Now func() time.Time
	// ServerTime asks the API server for the time. Nil asks the one of the manager.
	ServerTime func(context.Context) (time.Time, error)
}

// KeysSecret is the Secret in which the keys are.
func (o Options) KeysSecret() string {
	if o.Source == Generated {
		return o.SecretName
	}
	return KeysSecretName
}

// Validate says what is wrong with the options. It names flags, because it is
// by these that they are set.
func (o Options) Validate() error {
	o = o.WithDefaults()
	switch {
	case o.Namespace == "":
		return errors.New("--webhook-namespace: the namespace of the manager is not known; name it")
	case !slices.Contains([]Source{Generated, CertManager, Files}, o.Source):
		return fmt.Errorf("--webhook-cert-source: unknown source %q; use %s, %s or %s", o.Source, Generated, CertManager, Files)
	case o.Source != Generated && o.CertDir == "":
		return fmt.Errorf("--webhook-cert-dir: %s and %s come from a folder with --webhook-cert-source=%s; name it", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, o.Source)
	}
	if len(o.ClientNames) > 0 && o.ClientCA == "" {
		return errors.New("--webhook-client-names: certificates of API servers are verified only with --webhook-client-ca; name their CA")
	}
	for _, host := range o.Hosts {
		if net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
			return fmt.Errorf("--webhook-host: %q is neither a name nor an IP address; leave out scheme and port", host)
		}
	}
	for _, name := range o.Only {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("--webhook-configurations: %q is no name; separate names by commas, without spaces", name)
		}
	}
	return nil
}

// WithDefaults are the options with what was left out.
func (o Options) WithDefaults() Options {
	if o.Address == "" {
		o.Address = fmt.Sprintf(":%d", Port)
	}
	if len(o.Hosts) == 0 {
		o.Hosts = []string{ServiceHost(o.Namespace)}
	}
	if o.Source == "" {
		o.Source = Generated
	}
	if o.SecretName == "" {
		o.SecretName = SecretName
	}
	return o
}

// ServiceHost is the name by which API servers call the Service.
func ServiceHost(namespace string) string { return ServiceName + "." + namespace + ".svc" }
