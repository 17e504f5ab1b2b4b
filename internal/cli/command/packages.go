package command

import (
	"context"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/origin"
)

// PackageHelp says how packages are named.
const PackageHelp = "name a package: a directory, an archive (.tgz), a URL, oci://REGISTRY/NAME:TAG, or its name in a repository"

// Packages are the flags that say where the package is that is named.
type Packages struct {
	Home KUDOHome
	from origin.Origin
}

// AddFlags adds the flags.
func (p *Packages) AddFlags(flags *pflag.FlagSet) {
	p.Home.AddFlag(flags)
	p.AddRepositoryFlag(flags)
	flags.StringVar(&p.from.OperatorVersion, "operator-version", "", "version of a package of a repository (default: the latest)")
	flags.StringVar(&p.from.AppVersion, "app-version", "", "version of the application of a package of a repository (default: the latest)")
	p.AddPlainHTTPFlag(flags)
}

// AddRepositoryFlag adds the flag that names a repository.
func (p *Packages) AddRepositoryFlag(flags *pflag.FlagSet) {
	flags.StringVar(&p.from.Repository, "repo", "", "name of the repository (default: that of its context)")
}

// AddPlainHTTPFlag adds the flag for registries without TLS.
func (p *Packages) AddPlainHTTPFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&p.from.PlainHTTP, "plain-http", false, "connect to registries (oci://) without TLS; those on this machine are always")
}

// Origin is where packages are, as the flags say.
func (p *Packages) Origin(env Environment) *origin.Origin {
	from := p.from
	from.Home, from.OnlyPaths = p.Home.Dir(env.Lookup), env.KUDO
	return &from
}

// Load reads the package that is named.
func (p *Packages) Load(ctx context.Context, env Environment, name string) (*packages.Package, error) {
	return p.Origin(env).Load(ctx, name)
}

// KUDOHome is the directory with the list of repositories, which KUDO has as well.
type KUDOHome string

// AddFlag adds the flag that names it.
func (h *KUDOHome) AddFlag(flags *pflag.FlagSet) {
	flags.StringVar((*string)(h), "home", "", "directory with the list of repositories (default: $KUDO_HOME or ~/.kudo)")
}

// Dir is the directory.
func (h *KUDOHome) Dir(lookup func(string) (string, bool)) string {
	if *h != "" {
		return string(*h)
	}
	if dir, ok := lookup("KUDO_HOME"); ok && dir != "" {
		return dir
	}
	home, _ := lookup("HOME") // without one, it is a directory that does not exist
	return filepath.Join(home, ".kudo")
}
