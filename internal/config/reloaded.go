package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// listing are the objects of a namespace that may roll workloads with annotations of Reloader.
type listing struct {
	objects []reloader.Object
	// unlisted are the kinds that must not be listed.
	unlisted []content.Kind
	// version identifies them.
	version string
}

// demand finds what config of a workload counts, if annotations of Reloader decide that. It returns what that was
// decided from.
func (p *pass) demand(ctx context.Context, e *entry) (version string, err error) {
	r := e.workload.Reloaded
	if r == nil {
		return e.version, nil
	}
	in, err := p.objectsIn(ctx, e.workload.Namespace)
	if err != nil {
		return "", err
	}
	version = e.version + " " + in.version
	if e.demandedAt != version {
		e.workload.Demand, e.demandedAt = r.DemandIn(e.workload.Demand, in.objects, in.unlisted), version
	}
	return version, nil
}

// objectsIn lists the objects of a namespace, once a pass.
func (p *pass) objectsIn(ctx context.Context, namespace string) (listing, error) {
	if l, ok := p.listed[namespace]; ok {
		return l, nil
	}
	objects, unlisted, err := workload.ListObjects(ctx, &p.source, p.options.Reloader, namespace)
	if err != nil {
		return listing{}, err
	}
	l := listing{objects: objects, unlisted: unlisted}
	sum := sha256.New()
	for i := range l.objects {
		o := &l.objects[i]
		_, _ = fmt.Fprintf(sum, "%s %s %s\n", o.Kind, o.Name, o.Mark)
	}
	_, _ = fmt.Fprint(sum, l.unlisted)
	l.version = hex.EncodeToString(sum.Sum(nil)[:8])
	if p.listed == nil {
		p.listed = map[string]listing{}
	}
	p.listed[namespace] = l
	return l, nil
}
