package kube

import (
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Observing is what a manager may be besides, in tests: one that also sees through the caches
// that are not the manager's own.
type Observing interface {
	Observe(seen cache.Cache, o cache.Options) cache.Cache
}

// NewCache makes a cache of what a manager does not cache itself. It runs once it is added to
// the manager.
func NewCache(mgr ctrl.Manager, o cache.Options) (cache.Cache, error) {
	o.HTTPClient = mgr.GetHTTPClient()
	return NewCacheAs(mgr, mgr.GetConfig(), o)
}

// NewCacheAs makes a cache that reads with another configuration than the manager's. The caller
// runs it.
func NewCacheAs(mgr ctrl.Manager, config *rest.Config, o cache.Options) (cache.Cache, error) {
	o.Scheme, o.Mapper = mgr.GetScheme(), mgr.GetRESTMapper()
	c, err := cache.New(config, o)
	if m, ok := mgr.(Observing); ok && err == nil {
		c = m.Observe(c, o)
	}
	return c, err //nolint:wrapcheck // the caller says what it is for
}

// InNamespaces are a cache's settings for some namespaces, nil for all.
func InNamespaces(names []string) map[string]cache.Config {
	if len(names) == 0 {
		return nil
	}
	configs := make(map[string]cache.Config, len(names))
	for _, name := range names {
		configs[name] = cache.Config{}
	}
	return configs
}
