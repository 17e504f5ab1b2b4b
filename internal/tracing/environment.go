package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const prefix = "OTEL_EXPORTER_OTLP_"

// ReceiverOf returns the URL to which the variables of OpenTelemetry have traces sent, empty if
// none are. The SDK reads the other variables.
func ReceiverOf(lookup func(string) (string, bool)) (string, error) {
	get := func(name string) string {
		value, _ := lookup(name)
		return strings.TrimSpace(value)
	}
	receiver := get(prefix + "TRACES_ENDPOINT")
	if base := get(prefix + "ENDPOINT"); receiver == "" && base != "" {
		receiver = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if receiver == "" || strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") || get("OTEL_TRACES_EXPORTER") == "none" {
		return "", nil
	}
	for _, v := range []struct {
		name  string
		check func(string) error
	}{{"PROTOCOL", checkProtocol}, {"ENDPOINT", checkURL}, {"HEADERS", checkHeaders}} {
		for _, name := range []string{prefix + v.name, prefix + "TRACES_" + v.name} {
			value := get(name)
			if err := v.check(value); value != "" && err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return receiver, nil
}

func checkProtocol(p string) error {
	if p != "http/protobuf" && p != "http/json" {
		return fmt.Errorf("%q is not supported; use http/protobuf, whose port is 4318 by default", p)
	}
	return nil
}

// checkURL and checkHeaders refuse what the SDK would log, because it may have a password.
func checkURL(text string) error {
	if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("not a valid http or https URL")
	}
	return nil
}

func checkHeaders(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(value); strings.TrimSpace(pair) != "" && (!found || err != nil || !httpguts.ValidHeaderFieldName(strings.TrimSpace(name))) {
			return errors.New("not of the form name=value,name=value")
		}
	}
	return nil
}
