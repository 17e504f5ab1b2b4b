package steer

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
)

// steering is a command by which a person changes a rollout. It records who did, when
// and why.
type steering struct {
	person

	verb                 act.Verb
	short, long, example string
	// kinds are those that it changes.
	kinds []string
}

// NewPause returns the command pause.
func NewPause(env command.Environment) *cobra.Command {
	return newSteering(env, steering{
		verb: act.Pause, kinds: act.PausedKinds,
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
		verb: act.Resume, kinds: act.PausedKinds,
		short: "Resume a paused rollout", example: "module/shop -n clusters",
	})
}

// NewRetry returns the command retry.
func NewRetry(env command.Environment) *cobra.Command {
	return newSteering(env, steering{
		verb: act.Retry, kinds: act.RetriedKinds,
		short: "Retry a rollout that has failed",
		long: "KIND is a RolloutGroup, whose progress deadline starts again, or a ConfigMap or Secret:\n" +
			"what has failed with it so far holds no workload any more, and workloads that were rolled\n" +
			"back from it are rolled again; or a Module or BootstrapModule: the revision that it has\n" +
			"given up is rolled out once more, once all clusters have returned from it. What has not\n" +
			"failed is not changed, and the exit code is 1.",
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
		Use: string(s.verb) + " " + object, Short: s.short, Long: strings.TrimSpace(s.short + ".\n" + s.long),
		Example: "  spillway " + string(s.verb) + " " + s.example + ` --reason "incident 42"`,
		Args:    command.Exactly(1, "name one object as "+object),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0]) },
	}
	s.addFlags(cmd)
	return cmd
}

// instead says what to name in the place of something that the command does not take, empty for one
// of its kinds.
func (s *steering) instead(arg string) string {
	retries := s.verb == act.Retry
	if _, isPolicy := command.NamedAs(arg, describe.KindPolicy, describe.KindClusterPolicy); isPolicy {
		return "a release is of an object; name the ConfigMap or Secret, as spillway status shows it"
	}
	if instance, is := command.NamedAs(arg, "Instance"); is && retries {
		return "a plan is retried with spillway plan retry " + instance.Name
	}
	if ref, is := command.NamedAs(arg, workload.Deployment, workload.StatefulSet, workload.DaemonSet); is && retries {
		return "name the ConfigMap or Secret with which it has failed, which spillway explain " + ref.String() + " names; or its RolloutGroup"
	}
	return ""
}

func (s *steering) run(cmd *cobra.Command, arg string) error {
	ref, err := command.Wanted(string(s.verb), arg, s.kinds, s.instead(arg))
	if err != nil {
		return err
	}
	return s.do(cmd, act.Request{Verb: s.verb, Ref: ref})
}
