package kudo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/packages/repository"
)

// community is the repository of KUDO's own packages.
var community = repository.Repository{Name: "community", URL: "https://kudo-repository.storage.googleapis.com"}

// initialization is the command init: it writes the list of repositories, and installs the
// manager as spillway install does.
type initialization struct {
	*grammar

	clientOnly, crdOnly, upgrade, verify, dryRun, wait, selfSigned bool
	waitTimeout                                                    int
	image, pullPolicy, account, version, output                    string
}

func (g *grammar) init() *cobra.Command {
	i := &initialization{grammar: g}
	cmd := &cobra.Command{
		Use: "init", Short: "Write the list of repositories, and install the manager",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := i.check(); err != nil {
				return err
			}
			if i.dryRun {
				return i.install(cmd, display.Raw(cmd.OutOrStdout()), "--export")
			}
			if i.verify {
				return i.call(cmd, "check", "--rings=plans")
			}
			if err := i.writeHome(cmd.OutOrStdout()); err != nil || i.clientOnly {
				return err
			}
			if err := i.install(cmd, cmd.OutOrStdout()); err != nil || !i.wait {
				return err
			}
			return i.waitForManager(cmd.Context(), i.managerNamespace(cmd))
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&i.clientOnly, "client-only", "c", false, "only write the list of repositories")
	flags.BoolVar(&i.crdOnly, "crd-only", false, "only install the kinds")
	flags.BoolVar(&i.upgrade, "upgrade", false, "accepted, and without effect: an installation that exists is upgraded")
	flags.BoolVar(&i.verify, "verify", false, "check the cluster and the permissions, and change nothing")
	flags.BoolVar(&i.dryRun, "dry-run", false, "print the manifests, and change nothing")
	flags.StringVarP(&i.output, "output", "o", "", "output format of --dry-run: yaml")
	flags.BoolVarP(&i.wait, "wait", "w", false, "wait until the manager is available")
	flags.IntVar(&i.waitTimeout, "wait-timeout", waitSeconds, "how long to wait, in seconds")
	flags.StringVarP(&i.image, "kudo-image", "i", "", "image of Spillway's manager (default: that of this release)")
	flags.StringVar(&i.pullPolicy, "kudo-image-pull-policy", "", "when to pull the image: Always, IfNotPresent or Never (default: as Kubernetes decides)")
	flags.StringVar(&i.version, "version", "", "version of the manager: that of this program, and no other")
	flags.StringVar(&i.account, "service-account", "", "not supported")
	flags.BoolVar(&i.selfSigned, "unsafe-self-signed-webhook-ca", false, "accepted, and without effect: the manager has a CA of its own")
	return cmd
}

// check refuses what Spillway installs otherwise.
func (i *initialization) check() error {
	for _, refused := range []struct {
		isGiven   bool
		flag, why string
	}{
		{i.crdOnly && i.clientOnly, "crd-only", "--client-only asks no cluster; leave out one of them"},
		{i.crdOnly && i.wait, "wait", "there is no manager to wait for with --crd-only; leave out one of them"},
		{!isOwnVersion(i.version), "version", "this program installs version " + command.CurrentVersion() + "; use the program of that version, or leave it out"},
		{i.account != "", "service-account", "the manager has one of its own, with the permissions that it needs; leave it out"},
		{strings.Contains(i.image, "kudobuilder/"), "kudo-image", i.image + " is KUDO's manager; name an image of Spillway, or leave it out"},
		{i.output != "" && i.output != "yaml", "output", "only yaml is known"},
		{i.output != "" && !i.dryRun, "output", "is for --dry-run"},
	} {
		if refused.isGiven {
			return fmt.Errorf("--%s: %s", refused.flag, refused.why)
		}
	}
	return nil
}

// isOwnVersion is true of the version of this program, and of none.
func isOwnVersion(version string) bool {
	return version == "" || strings.TrimPrefix(version, "v") == strings.TrimPrefix(command.CurrentVersion(), "v")
}

// writeHome writes the list of repositories, if there is none.
func (i *initialization) writeHome(w io.Writer) error {
	home := i.home.Dir(i.env.Lookup)
	list, err := repository.Open(home)
	if err != nil {
		return err
	}
	if len(list.Repositories) == 0 {
		if err := errors.Join(list.Add(community), list.Save(home)); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(w, "$KUDO_HOME has been configured at %s\n", home)
	return nil
}

// install installs the rings that packages need.
func (i *initialization) install(cmd *cobra.Command, out io.Writer, more ...string) error {
	args := append([]string{"install", "--rings=config,zones,plans", "-n", i.managerNamespace(cmd)}, more...)
	if i.kubeconfig != "" {
		args = append(args, "--kubeconfig", i.kubeconfig)
	}
	if i.crdOnly {
		args = append(args, "--crds-only")
	}
	if i.image != "" {
		args = append(args, "--image", i.image)
	}
	if i.pullPolicy != "" {
		args = append(args, "--image-pull-policy", i.pullPolicy)
	}
	return i.run(cmd.Context(), out, args...)
}

// managerNamespace is the namespace that is named; otherwise that of spillway install.
func (i *initialization) managerNamespace(cmd *cobra.Command) string {
	if cmd.Flags().Changed("namespace") {
		return i.namespace
	}
	return manifests.DefaultNamespace
}

// waitForManager waits until the manager's Deployment is available.
func (i *initialization) waitForManager(ctx context.Context, namespace string) error {
	c, err := i.client()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(i.waitTimeout)*time.Second)
	defer stop()
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "spillway"}, d); err != nil {
			return false, fmt.Errorf("get deployment/spillway: %w", err)
		}
		return d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas > 0 && d.Status.UpdatedReplicas == d.Status.Replicas, nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("deployment/spillway in namespace %s is not available after %d s; see: kubectl describe deployment/spillway -n %s", namespace, i.waitTimeout, namespace)
	}
	return err //nolint:wrapcheck // it says what was read
}
