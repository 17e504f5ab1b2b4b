package controlplane

import (
	"context"
	"errors"
	"fmt"
)

// Beside starts another API server on the same etcd, under a prefix of its own: a
// further cluster, of about 280 MB. It has neither nodes nor controllers, so that
// no object is garbage collected there, and a namespace that is deleted stays. It ends
// with the control plane, or with its own Stop.
func (cp *ControlPlane) Beside(ctx context.Context) (*ControlPlane, error) {
	if cp.Dir == "" {
		return nil, fmt.Errorf("%s names one cluster; unset it to have several", ExistingVariable)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	b := &ControlPlane{
		options: Options{Stay: cp.options.Stay}, assets: cp.assets, token: random(), prefix: "/" + random(), etcdPort: cp.etcdPort, alone: true,
	}
	if err := b.prepareIn(cp.Dir); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	if err := b.StartAPIServer(ctx); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	cp.besideMu.Lock()
	defer cp.besideMu.Unlock()
	cp.beside = append(cp.beside, b)
	return b, nil
}

// prepareIn lays out its folder inside another one.
func (cp *ControlPlane) prepareIn(folder string) error {
	if err := cp.makeFolder(folder); err != nil {
		return err
	}
	var err error
	if cp.apiPort, err = FreePort(); err != nil {
		return err
	}
	key, err := signingKey()
	if err != nil {
		return err
	}
	return cp.writeCredentials(key)
}
