package command

import (
	"fmt"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
)

// CheckNamespaces is an error for what cannot be the name of a namespace.
func CheckNamespaces(flag string, names ...string) error {
	for _, name := range names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("--%s: %q cannot be a namespace; use lower-case letters, digits and -", flag, name)
		}
	}
	return nil
}

// CheckName is an error for what cannot be the name of an object; nothing is its default.
func CheckName(flag, name string) error {
	if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("--%s: %q cannot be a name; use lower-case letters, digits, - and dots", flag, name)
	}
	return nil
}

// CheckAddress is an error for what cannot be an address to listen at; "0" disables it.
func CheckAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil && address != "0" && address != "" {
		return fmt.Errorf("--%s: %q is not an address to listen at; write it as :8080 or 127.0.0.1:8080", flag, address)
	}
	return nil
}
