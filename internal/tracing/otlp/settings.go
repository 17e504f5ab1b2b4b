// Package otlp sends spans to a receiver of OTLP by HTTP, as the environment variables of
// OpenTelemetry say. The libraries of OpenTelemetry make the program a third larger.
package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	defaultTimeout = 10 * time.Second
	protocol       = "http/protobuf"
	prefix         = "OTEL_EXPORTER_OTLP_"
)

// Settings are where traces are sent, and as whose.
type Settings struct {
	// URL is the address, and Header what requests have besides.
	URL    string
	Header http.Header
	// Timeout bounds a request.
	Timeout time.Duration
	// Gzip compresses requests.
	Gzip bool
	// Resource are the attributes of this program.
	Resource map[string]string
	// Roots are the authorities whose certificates are accepted, those of the system if nil,
	// and Certificates are the own ones.
	Roots        *x509.CertPool
	Certificates []tls.Certificate
}

// FromEnvironment reads the variables of OpenTelemetry. It returns nil if no endpoint is set, or
// traces are off.
func FromEnvironment(lookup func(string) (string, bool)) (*Settings, error) {
	e := environment(lookup)
	address := e.endpoint()
	if address == "" || strings.EqualFold(e.get("OTEL_SDK_DISABLED"), "true") || e.get("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil //nolint:nilnil // there are none
	}
	if p := e.option("PROTOCOL"); p != "" && p != protocol {
		return nil, fmt.Errorf("%sPROTOCOL: %q is not supported; use %s, whose port is 4318 by default", prefix, p, protocol)
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%sENDPOINT: not a valid http or https URL", prefix) // which may have a password
	}
	s := &Settings{URL: address, Gzip: e.option("COMPRESSION") == "gzip", Header: http.Header{}, Resource: map[string]string{"service.name": "spillway"}}
	return s, errors.Join(e.timeout(s), e.headers(s), e.resource(s), e.certificates(s))
}

// environment looks up a variable.
type environment func(string) (string, bool)

func (e environment) get(name string) string {
	if value, ok := e(name); ok {
		return strings.TrimSpace(value)
	}
	return ""
}

// option is a variable of the exporter: that for traces alone, or that for all signals.
func (e environment) option(name string) string {
	if value := e.get(prefix + "TRACES_" + name); value != "" {
		return value
	}
	return e.get(prefix + name)
}

// endpoint is the address for traces. That for all signals is their base.
func (e environment) endpoint() string {
	if value := e.get(prefix + "TRACES_ENDPOINT"); value != "" {
		return value
	}
	if value := e.get(prefix + "ENDPOINT"); value != "" {
		return strings.TrimSuffix(value, "/") + "/v1/traces"
	}
	return ""
}

func (e environment) timeout(s *Settings) error {
	s.Timeout = defaultTimeout
	value := e.option("TIMEOUT")
	if value == "" {
		return nil
	}
	ms, err := strconv.Atoi(value)
	if err != nil || ms <= 0 {
		return fmt.Errorf("%sTIMEOUT: %q is not a positive number of milliseconds", prefix, value)
	}
	s.Timeout = time.Duration(ms) * time.Millisecond
	return nil
}

func (e environment) headers(s *Settings) error {
	pairs, err := pairsOf(e.option("HEADERS"))
	if err != nil {
		return fmt.Errorf("%sHEADERS: %w", prefix, err)
	}
	for name, value := range pairs {
		s.Header.Set(name, value)
	}
	return nil
}

func (e environment) resource(s *Settings) error {
	pairs, err := pairsOf(e.get("OTEL_RESOURCE_ATTRIBUTES"))
	if err != nil {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	maps.Copy(s.Resource, pairs)
	if name := e.get("OTEL_SERVICE_NAME"); name != "" {
		s.Resource["service.name"] = name
	}
	return nil
}

// pairsOf reads "a=b,c=d", in which values are percent-encoded. An error says nothing of
// values, which may be credentials.
func pairsOf(text string) (map[string]string, error) {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, errors.New("not of the form name=value,name=value")
		}
		pairs[name] = decoded
	}
	return pairs, nil
}

func (e environment) certificates(s *Settings) error {
	if file := e.option("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file) //nolint:gosec // the user who runs the manager names it
		s.Roots = x509.NewCertPool()
		if err != nil || !s.Roots.AppendCertsFromPEM(pem) {
			return errors.Join(fmt.Errorf("%sCERTIFICATE: no certificate in %s", prefix, file), err)
		}
	}
	certificate, key := e.option("CLIENT_CERTIFICATE"), e.option("CLIENT_KEY")
	if certificate == "" && key == "" {
		return nil
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("%sCLIENT_CERTIFICATE: %w", prefix, err)
	}
	s.Certificates = []tls.Certificate{own}
	return nil
}
