package steer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/rollout"
)

// steering is what pause, resume and retry have in common: a person tells a
// rollout what to do, and it is recorded who did, when and why.
type steering struct {
	cluster command.Cluster
	now     func() time.Time
	verb    string
	reason  string
	// steer changes the group, and returns what to say of it; an error leaves the
	// group as it is.
	steer func(g *v1alpha1.RolloutGroup, who command.Author) (string, error)
}

// NewPause returns the command pause.
func NewPause(env command.Environment) *cobra.Command {
	return newSteering(env, "pause", "Keep a rollout as it is until it is resumed",
		"Nothing more is moved. What is on its way already stays on its way.", pauseGroup)
}

// NewResume returns the command resume.
func NewResume(env command.Environment) *cobra.Command {
	return newSteering(env, "resume", "Let a paused rollout go on", "", resumeGroup)
}

// NewRetry returns the command retry.
func NewRetry(env command.Environment) *cobra.Command {
	return newSteering(env, "retry", "Give a rollout that has failed another try",
		"What has exceeded its progress deadline is given the time anew.", retryGroup)
}

func newSteering(env command.Environment, verb, short, long string, steer func(*v1alpha1.RolloutGroup, command.Author) (string, error)) *cobra.Command {
	s := &steering{now: env.Now, verb: verb, steer: steer}
	cmd := &cobra.Command{
		Use: verb + " rolloutgroup/NAME", Short: short, Long: strings.TrimSpace(short + ".\n" + long),
		Example: "  spillway " + verb + ` rolloutgroup/ingester -n mimir --reason "the review"`,
		Args:    command.Exactly(1, "name one group as rolloutgroup/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			said, err := s.run(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
			return err //nolint:wrapcheck // nothing can be added to a broken pipe
		},
	}
	s.cluster.AddFlags(cmd.Flags())
	s.cluster.AddNamespaceFlag(cmd.Flags())
	cmd.Flags().StringVar(&s.reason, "reason", "", "why; it is shown wherever the rollout is")
	return cmd
}

func (s *steering) run(ctx context.Context, arg string) (string, error) {
	name, err := groupName(arg)
	if err != nil {
		return "", err
	}
	namespace, err := s.cluster.ResolveNamespace()
	if err != nil {
		return "", err
	}
	c, err := s.cluster.Client()
	if err != nil {
		return "", err
	}
	who := command.Author{By: command.Whoami(ctx, c), Reason: s.reason, At: metav1.NewTime(s.now().Truncate(time.Second))}
	key, said := types.NamespacedName{Namespace: namespace, Name: name}, ""
	var group *v1alpha1.RolloutGroup
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		group, said, err = s.change(ctx, c, key, who)
		return err
	})
	if apierrors.IsConflict(err) {
		return "", fmt.Errorf("rolloutgroup %s was changed by somebody else at the same moment; look again", name)
	}
	if err != nil {
		return "", err
	}
	return said, s.leaveNote(ctx, c, group, who)
}

// change changes the group, if it is as it was seen.
func (s *steering) change(ctx context.Context, c client.Client, key types.NamespacedName, who command.Author) (group *v1alpha1.RolloutGroup, said string, err error) {
	if group, err = getGroup(ctx, c, key); err != nil {
		return nil, "", err
	}
	before := group.DeepCopy()
	if said, err = s.steer(group, who); err != nil {
		return nil, "", err
	}
	err = c.Patch(ctx, group, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(command.FieldOwner))
	if err != nil {
		return nil, "", fmt.Errorf("change rolloutgroup %s: %w", key.Name, err)
	}
	return group, said, nil
}

// leaveNote records in an Event who did it, because a pause that was removed can
// no longer tell.
func (s *steering) leaveNote(ctx context.Context, c client.Client, group *v1alpha1.RolloutGroup, who command.Author) error {
	return command.RecordEvent(ctx, c, corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "RolloutGroup",
		Namespace: group.Namespace, Name: group.Name, UID: group.UID,
	}, s.reasonWord(), who, s.now())
}

// reasonWord is the verb as an Event's reason: "Paused".
func (s *steering) reasonWord() rollout.Reason {
	return map[string]rollout.Reason{"pause": command.ReasonPaused, "resume": command.ReasonResumed, "retry": command.ReasonRetried}[s.verb]
}

func groupName(arg string) (string, error) {
	if name, ok := groupNamed(arg); ok {
		return name, nil
	}
	return "", fmt.Errorf("%q is not a group of StatefulSets; name it as rolloutgroup/NAME", arg)
}

// groupNamed returns the name if the argument is of the kind.
func groupNamed(arg string) (string, bool) {
	ref, ok := command.NamedAs(arg, "RolloutGroup")
	return ref.Name, ok
}

func getGroup(ctx context.Context, reader client.Reader, name types.NamespacedName) (*v1alpha1.RolloutGroup, error) {
	group := &v1alpha1.RolloutGroup{}
	err := reader.Get(ctx, name, group)
	switch {
	case apimeta.IsNoMatchError(err):
		return nil, errors.New("this cluster does not know RolloutGroups; install them with spillway install --rings=zones")
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no rolloutgroup %s in namespace %s; it is made for StatefulSets with the label rollout-group: %s", name.Name, name.Namespace, name.Name)
	case err != nil:
		return nil, fmt.Errorf("get rolloutgroup %s: %w", name.Name, err)
	default:
		return group, nil
	}
}

func pauseGroup(g *v1alpha1.RolloutGroup, who command.Author) (string, error) {
	if p := g.Spec.Pause; p != nil && p.Reason == who.Reason {
		return "", fmt.Errorf("rolloutgroup %s is paused already%s", g.Name, command.ByName(p.By))
	}
	g.Spec.Pause = &v1alpha1.Pause{Reason: who.Reason, By: who.By, Since: &who.At}
	return fmt.Sprintf("rolloutgroup/%s paused", g.Name), nil
}

func resumeGroup(g *v1alpha1.RolloutGroup, _ command.Author) (string, error) {
	if g.Spec.Pause == nil {
		return "", fmt.Errorf("rolloutgroup %s is not paused", g.Name)
	}
	g.Spec.Pause = nil
	return fmt.Sprintf("rolloutgroup/%s resumed", g.Name), nil
}

func retryGroup(g *v1alpha1.RolloutGroup, who command.Author) (string, error) {
	g.Spec.Retry = &v1alpha1.Retry{At: who.At, Reason: who.Reason, By: who.By}
	return fmt.Sprintf("rolloutgroup/%s is tried again", g.Name), nil
}
