package certificate

import (
	"context"
	"fmt"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watchFiles wakes up when something in a folder changes. A mounted Secret
// changes by a symbolic link of the folder that is replaced, which is seen too.
func watchFiles(mgr ctrl.Manager, dir string) (source.Source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the certificate: %w", err)
	}
	if err := w.Add(dir); err != nil {
		return nil, fmt.Errorf("--webhook-cert-dir: watch %q: %w", dir, err)
	}
	f := &folder{w, mgr.GetLogger()}
	return source.Func(f.start), nil
}

type folder struct {
	*fsnotify.Watcher

	log logr.Logger
}

func (f *folder) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	context.AfterFunc(ctx, func() { _ = f.Close() }) // which ends the loop
	go func() {
		for f.changed() {
			queue.Add(request)
		}
	}()
	return nil
}

// changed waits until something has, or may have; false is the end.
func (f *folder) changed() bool {
	select {
	case _, open := <-f.Events:
		return open
	case err, open := <-f.Errors:
		if open {
			f.log.Error(err, "watch the certificate")
		}
		return open
	}
}
