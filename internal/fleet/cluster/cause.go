package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
)

// cause is why a request failed, in words that are the same each time: without ports,
// addresses and times that would make a sentence new whenever it is said.
func cause(err error) string {
	var (
		timeout     net.Error
		certificate *tls.CertificateVerificationError
		name        *net.DNSError
		refused     *refusedError
	)
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &certificate):
		return "the certificate of the server is not trusted by the kubeconfig"
	case errors.As(err, &name):
		return "unknown host name"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	default:
		return "the connection failed"
	}
}

// isTimeout is true of an error that says that an answer took too long.
func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// IsConnection returns true for an error that says nothing but that a request did not get
// through. A caller that gets one calls [Registry.Suspect].
func IsConnection(err error) bool {
	var network net.Error
	return err != nil && (errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET))
}
