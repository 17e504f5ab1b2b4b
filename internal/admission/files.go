package admission

import (
	"context"
	"fmt"

	"github.com/fsnotify/fsnotify"
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
	log := mgr.GetLogger()
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		context.AfterFunc(ctx, func() { _ = w.Close() }) // which ends the loop
		go func() {
			for {
				select {
				case _, open := <-w.Events:
					if !open {
						return
					}
				case err, open := <-w.Errors:
					if !open {
						return
					}
					log.Error(err, "watch the certificate")
				}
				queue.Add(request)
			}
		}()
		return nil
	}), nil
}
