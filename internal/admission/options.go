package admission

import "time"

// Source is where the server's certificate comes from.
type Source string

// The sources of certificates.
const (
	// Generated certificates are made by the manager and kept in a Secret.
	Generated Source = "generated"
	// CertManager mounts a Secret that cert-manager fills, and leaves our own
	// webhook configurations to its CA injector.
	CertManager Source = "cert-manager"
	// Files are in a folder that somebody else fills.
	Files Source = "files"
)

// Options are the choices of whoever runs the server.
type Options struct {
	// Enabled is whether there is to be a server at all.
	Enabled bool
	// Address is where to serve, such as ":9443".
	Address string
	// Hosts are the names or IP addresses by which the API server calls; the
	// certificate has to cover them all. The default is that of the Service.
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
	// Own are the names of our own webhook configurations. The manager sets them
	// to those of the rings that it runs, unless they are given.
	Own []string
	// Only restricts the webhook configurations of users that are looked at to
	// these names. With none, all are that carry the labels.
	Only []string
	// Now is the clock.
	Now func() time.Time
}
