package origin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/repository"
)

// Origin says how names of packages are understood.
type Origin struct {
	// Home is the user's directory of KUDO, with the list of repositories.
	Home string
	// Repository is the repository that is used; empty is that of the context.
	Repository string
	// AppVersion and OperatorVersion are wanted from a repository; empty is the latest.
	AppVersion, OperatorVersion string
	// PlainHTTP permits registries without TLS. Those on loopback need no permission.
	PlainHTTP bool
	// OnlyPaths is true if what is not written as a path is looked up in the repository, even
	// if there is a directory of that name. It is how KUDO understands names.
	OnlyPaths bool
}

// Load reads the package of a name. The error says what the name may be.
func (o *Origin) Load(ctx context.Context, name string) (*packages.Package, error) {
	switch {
	case strings.HasPrefix(name, ociScheme):
		return o.fromRegistry(ctx, name)
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		raw, err := repository.NewClient().Get(ctx, name)
		if err != nil {
			return nil, err
		}
		return packages.Read(name, bytes.NewReader(raw))
	case o.isLocal(name):
		return packages.Load(name)
	default:
		return o.fromRepository(ctx, name)
	}
}

// isLocal is true of what is written as a path, and of what exists.
func (o *Origin) isLocal(name string) bool {
	if IsPath(name) {
		return true
	}
	if o.OnlyPaths || o.Repository != "" {
		return false
	}
	_, err := os.Stat(name)
	return err == nil
}

// IsPath is true of a name that is written as a path.
func IsPath(name string) bool {
	return name == "." || name == ".." || filepath.IsAbs(name) || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") ||
		strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz") || strings.ContainsRune(name, '/')
}

func (o *Origin) fromRepository(ctx context.Context, name string) (*packages.Package, error) {
	list, err := repository.Open(o.Home)
	if err != nil {
		return nil, err
	}
	if len(list.Repositories) == 0 {
		return nil, fmt.Errorf("%s not found: there is no such directory, and no repository of packages is configured; name a directory, an archive (.tgz), a URL or oci://REGISTRY/NAME:TAG, or add a repository with: spillway package repo add NAME URL", name)
	}
	from, err := list.Get(o.Repository)
	if err != nil {
		return nil, err
	}
	raw, at, err := repository.NewClient().Archive(ctx, from, repository.Wanted{Name: name, AppVersion: o.AppVersion, OperatorVersion: o.OperatorVersion})
	if err != nil {
		return nil, err
	}
	return packages.Read(at, bytes.NewReader(raw))
}
