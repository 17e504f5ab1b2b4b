// Package identity names the programs by which people log in to the dashboard in tests: Dex,
// and oauth2-proxy before it. It is a module of its own, so that neither is a dependency of the
// program. The tests are in internal/cli; run them by "make identity-check".
package identity
