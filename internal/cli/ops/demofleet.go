package ops

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/demo"
	"github.com/spillway-dev/spillway/internal/lab/flux"
	"github.com/spillway-dev/spillway/internal/manager"
)

// fleetRepository is what the demo's module fetches; the demo itself serves it.
const fleetRepository = "https://git.demo/shop"

// fleetClusters are the workload clusters of the demo, the canary first.
var fleetClusters = []string{"berlin", "paris", "tokyo"}

// fleet tells the story of a fleet on a hub and three further API servers, which end
// with it.
func (r *demoRun) fleet(ctx context.Context) error {
	if r.cluster.Kubeconfig != "" || r.cluster.Context != "" {
		return errors.New("--fleet: it starts a hub and three clusters of its own; leave out --kubeconfig and --context")
	}
	err := r.fleetOnOwn(ctx)
	if errors.Is(err, controlplane.ErrNoScript) {
		return errors.New("there is no hub to start here: run make demo-fleet in a clone of https://github.com/spillway-dev/spillway, which builds API servers and Flux")
	}
	return err
}

func (r *demoRun) fleetOnOwn(ctx context.Context) error {
	_, _ = fmt.Fprintln(r.env.Out, "starting a hub, and three workload clusters: four API servers, and Flux on each")
	hub, err := controlplane.Start(ctx, controlplane.Options{Progress: r.env.Err})
	const ended = "the four API servers were stopped, and their folders removed"
	if err != nil {
		return demoError(ctx, fmt.Errorf("start the hub: %w", err), nil, ended)
	}
	playing, cancel := context.WithCancel(ctx)
	defer cancel()
	err = r.fleetOn(playing, hub)
	return demoError(ctx, err, hub.Stop(), ended)
}

func (r *demoRun) fleetOn(ctx context.Context, hub *controlplane.ControlPlane) error {
	assets, err := flux.Find(ctx, r.env.Err)
	if err != nil {
		return err
	}
	sources, err := flux.Serve()
	if err != nil {
		return err
	}
	defer func() { _ = sources.Close() }() // the demo is over
	if err := r.furnish(ctx, hub, assets, sources, manager.RingFleet); err != nil {
		return err
	}
	o := demo.FleetOptions{
		Hub: hub.Config(), Repository: fleetRepository, Out: r.env.Out, Width: display.TerminalWidth(r.env.Out),
		Publish: func(ctx context.Context, tag, manifest string) error {
			_, err := sources.Publish(ctx, fleetRepository, tag, map[string]string{"all.yaml": manifest})
			return err
		},
	}
	for _, name := range fleetClusters {
		cp, err := hub.Beside(ctx)
		if err != nil {
			return fmt.Errorf("start cluster %s: %w", name, err)
		}
		if err := r.furnish(ctx, cp, assets, sources, manager.RingAssemblage); err != nil {
			return err
		}
		kubeconfig, err := os.ReadFile(cp.Kubeconfig())
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", name, err)
		}
		o.Members = append(o.Members, demo.Member{Name: name, Config: cp.Config(), Kubeconfig: kubeconfig})
	}
	return demo.RunFleet(ctx, o)
}

// furnish installs what a cluster of the fleet needs, and runs Flux and a manager there.
func (r *demoRun) furnish(ctx context.Context, cp *controlplane.ControlPlane, assets flux.Assets, sources *flux.Sources, ring string) error {
	if err := assets.Install(ctx, cp.Config()); err != nil {
		return err
	}
	if err := installKinds(ctx, cp.Config(), ring); err != nil {
		return err
	}
	if err := sources.Play(ctx, cp.Config()); err != nil {
		return err
	}
	if err := assets.Run(cp); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the manager: %w", err)
	}
	return cp.Run(self, "manager", "--rings="+ring, "--kubeconfig="+cp.Kubeconfig(), "--leader-elect=false",
		"--allow-cluster-addresses=127.0.0.0/8", // where the demo's clusters are
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
}
