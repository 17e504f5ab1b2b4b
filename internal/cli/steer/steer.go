package steer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// steering is a command by which a person changes a rollout. It records who did, when
// and why.
type steering struct {
	person

	verb, short, long, example string
	// kinds are those that it changes.
	kinds []string
	// word is the reason of the Event, and says what was done.
	word rollout.Reason
	// check is an error if there is nothing to change; nil if edit knows.
	check func(ctx context.Context, c client.Reader, ref describe.Ref, obj client.Object, now time.Time) error
	// edit changes the object; an error leaves the object as it is.
	edit func(obj client.Object, who change.Author) error
}

// PausedKinds are those that the commands pause and resume take.
var PausedKinds = slices.Concat(command.RolledKinds, command.ReleasingKinds)

// NewPause returns the command pause.
func NewPause(env command.Environment) *cobra.Command {
	return newSteering(env, steering{
		verb: "pause", kinds: PausedKinds, word: change.ReasonPaused, edit: pause,
		short: "Pause a rollout until it is resumed",
		long: "Nothing more is updated, assigned or removed. What is updating already completes.\n" +
			"KIND is a workload, a RolloutGroup, an Instance or a Module; a ConfigMap or Secret: then\n" +
			"no workload is rolled for a change of it; or a ConfigPolicy or ClusterConfigPolicy: then\n" +
			"no workload is rolled for a change of the config that it is for.",
		example: "rolloutgroup/ingester -n mimir",
	})
}

// NewResume returns the command resume.
func NewResume(env command.Environment) *cobra.Command {
	return newSteering(env, steering{
		verb: "resume", kinds: PausedKinds, word: change.ReasonResumed, edit: resume,
		short: "Resume a paused rollout", example: "module/shop -n clusters",
	})
}

// RetriedKinds are those that the command retry takes.
var RetriedKinds = []string{"RolloutGroup", describe.KindConfigMap, describe.KindSecret}

// NewRetry returns the command retry.
func NewRetry(env command.Environment) *cobra.Command {
	return newSteering(env, steering{
		verb: "retry", kinds: RetriedKinds, word: change.ReasonRetried, check: hasFailed, edit: retry,
		short: "Retry a rollout that has failed",
		long: "KIND is a RolloutGroup, whose progress deadline starts again, or a ConfigMap or Secret:\n" +
			"what has failed with it so far holds no workload any more, and workloads that were rolled\n" +
			"back from it are rolled again. What has not failed is not changed, and the exit code is 1.",
		example: "secret/db -n shop",
	})
}

func newSteering(env command.Environment, s steering) *cobra.Command {
	s.now = env.Now
	object := "KIND/NAME"
	if len(s.kinds) == 1 {
		object = strings.ToLower(s.kinds[0]) + "/NAME"
	}
	cmd := &cobra.Command{
		Use: s.verb + " " + object, Short: s.short, Long: strings.TrimSpace(s.short + ".\n" + s.long),
		Example: "  spillway " + s.verb + " " + s.example + ` --reason "incident 42"`,
		Args:    command.Exactly(1, "name one object as "+object),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0]) },
	}
	s.addFlags(cmd)
	return cmd
}

// instead says what to name in the place of something that the command does not take.
func (s *steering) instead(arg string) string {
	retries := slices.Contains(s.kinds, describe.KindSecret) && !slices.Contains(s.kinds, workload.Deployment)
	if _, isPolicy := command.NamedAs(arg, describe.KindPolicy, describe.KindClusterPolicy); isPolicy {
		return "a release is of an object; name the ConfigMap or Secret, as spillway status shows it"
	}
	if instance, is := command.NamedAs(arg, "Instance"); is && retries {
		return "a plan is retried with spillway plan retry " + instance.Name
	}
	if ref, is := command.NamedAs(arg, workload.Deployment, workload.StatefulSet, workload.DaemonSet); is && retries {
		return "name the ConfigMap or Secret with which it has failed, which spillway explain " + ref.String() + " names; or its RolloutGroup"
	}
	return fmt.Sprintf("name one of %s as KIND/NAME", strings.Join(s.kinds, ", "))
}

func (s *steering) run(cmd *cobra.Command, arg string) error {
	ref, ok := command.NamedAs(arg, s.kinds...)
	if !ok {
		return fmt.Errorf("cannot %s %q: %s", s.verb, arg, s.instead(arg))
	}
	c, namespace, who, err := s.connect(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	obj := newObject(ref.Kind)
	if ref.Kind != describe.KindClusterPolicy {
		obj.SetNamespace(namespace)
	}
	obj.SetName(ref.Name)
	err = change.Apply(ctx, c, obj, func() error {
		if s.check != nil {
			if err := s.check(ctx, c, ref, obj, s.now()); err != nil {
				return err
			}
		}
		if err := s.edit(obj, who); err != nil {
			return fmt.Errorf("%s %w", ref, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	said := fmt.Sprintf("%s %s%s", ref, strings.ToLower(string(s.word)), s.dryRun.Note())
	if err := change.Show(cmd.OutOrStdout(), s.output, c, said, obj); err != nil {
		return err
	}
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err //nolint:wrapcheck // the kinds are registered
	}
	return change.RecordEvent(ctx, c, corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: ref.Name, UID: obj.GetUID(),
	}, s.word, who, s.now())
}
