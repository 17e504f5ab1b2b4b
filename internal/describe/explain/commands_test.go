package explain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// shell checks commands that are printed, as a shell that they are pasted into.
type shell struct {
	kinds apimeta.RESTMapper
	// exists says whether there is an object; nil to leave that open.
	exists func(describe.Ref) error
	files  []string
}

// newShell knows the kinds that there are, by all names that kubectl takes for them.
func newShell(t *testing.T) *shell {
	t.Helper()
	asked, err := discovery.NewDiscoveryClientForConfig(testenv.Shared().Config())
	if err != nil {
		t.Fatal(err)
	}
	known := memory.NewMemCacheClient(asked)
	return &shell{kinds: restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(known), known, nil)}
}

// next judges the command of a link, after the one that comes first.
func (s *shell) next(l *explain.Link) error {
	if l.Next == "" {
		return nil
	}
	s.files = nil
	if l.First != "" {
		first, rest, ok := strings.Cut(strings.TrimPrefix(l.First, "(umask 077; "), " > ")
		file, ok2 := strings.CutSuffix(rest, ")")
		if !ok || !ok2 {
			return fmt.Errorf("first: %s", l.First)
		}
		if err := s.command(first); err != nil {
			return fmt.Errorf("first: %w", err)
		}
		s.files = append(s.files, file)
	}
	return s.command(l.Next)
}

// command judges one, and what its output goes through.
func (s *shell) command(text string) error {
	words, err := split(text)
	if err != nil {
		return err
	}
	var pipes [][]string
	for {
		i := slices.Index(words, "|")
		if i < 0 {
			break
		}
		pipes, words = append(pipes, words[:i]), words[i+1:]
	}
	pipes = append(pipes, words)
	for i, words := range pipes {
		err := s.program(words, i == 0)
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func (s *shell) program(words []string, first bool) error {
	switch {
	case len(words) == 0:
		return errors.New("there is no command")
	case first && words[0] == "spillway":
		return s.spillway(words[1:])
	case first && words[0] == "kubectl":
		return s.kubectl(words[1:])
	case !first && words[0] == "grep" && len(words) == 3 && words[1] == "-e":
		return nil
	default:
		return fmt.Errorf("what is %q?", words)
	}
}

// spillway runs a command up to where it would do something.
func (s *shell) spillway(args []string) error {
	cmd, rest, err := cli.Commands().Find(args)
	if err != nil {
		return err
	}
	if !cmd.Runnable() {
		return fmt.Errorf("%s does nothing", cmd.CommandPath())
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return errors.Join(cmd.ValidateArgs(cmd.Flags().Args()), cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups(), s.file(cmd.Flags()))
}

// file checks that the kubeconfig of a command exists.
func (s *shell) file(flags *pflag.FlagSet) error {
	if file, err := flags.GetString("kubeconfig"); err != nil || file != "" && !slices.Contains(s.files, file) {
		return fmt.Errorf("--kubeconfig %s: no command has written the file", file)
	}
	return nil
}

// verbs are those of kubectl that are printed, with their flags: true for those without
// a value.
var verbs = map[string]map[string]bool{
	"get": {"output": false, "selector": false, "all-namespaces": true, "show-labels": true}, "describe": {}, "edit": {},
	"logs": {"container": false, "previous": true}, "patch": {"type": false, "patch": false, "subresource": false}, "annotate": {},
	"delete": {"force": true, "grace-period": false}, "scale": {"replicas": false}, "rollout resume": {}, "cluster-info": {},
	"create configmap": {"from-literal": false}, "create secret generic": {"from-literal": false}, "create serviceaccount": {},
	"create secret docker-registry": {"docker-server": false, "docker-username": false, "docker-password": false},
}

var short = map[string]string{"output": "o", "selector": "l", "all-namespaces": "A", "container": "c", "previous": "p"}

// kubectl judges what kubectl is asked to do.
func (s *shell) kubectl(args []string) error {
	verb := ""
	for known := range verbs {
		if strings.HasPrefix(strings.Join(args, " ")+" ", known+" ") && len(known) > len(verb) {
			verb = known
		}
	}
	if verb == "" {
		return fmt.Errorf("kubectl %s: there is no such verb", strings.Join(args, " "))
	}
	flags := pflag.NewFlagSet(verb, pflag.ContinueOnError)
	flags.StringP("namespace", "n", "", "")
	flags.String("kubeconfig", "", "")
	flags.String("context", "", "")
	for name, bare := range verbs[verb] {
		switch letter := short[name]; {
		case verb == "patch" && name == "patch":
			flags.StringP(name, "p", "", "")
		case bare:
			flags.BoolP(name, letter, false, "")
		default:
			flags.StringP(name, letter, "", "")
		}
	}
	if err := flags.Parse(args[len(strings.Fields(verb)):]); err != nil {
		return err
	}
	if err := s.file(flags); err != nil {
		return err
	}
	return s.objects(verb, flags)
}

// objects are those that a command is about: of a kind that there is, and there.
func (s *shell) objects(verb string, flags *pflag.FlagSet) error {
	args := flags.Args()
	switch {
	case verb == "cluster-info":
		return nil
	case len(args) == 0:
		return errors.New("what is it about?")
	case strings.HasPrefix(verb, "create "):
		return nil
	}
	if more := args[1:]; verb == "annotate" && len(more) != 1 || verb != "annotate" && len(more) > 0 {
		return fmt.Errorf("what are %q?", more)
	}
	word, name, named := strings.Cut(args[0], "/")
	if !named && verb != "get" {
		return fmt.Errorf("what of %s?", word)
	}
	for kind := range strings.SplitSeq(word, ",") {
		if err := s.object(kind, flags.Lookup("namespace").Value.String(), name); err != nil {
			return err
		}
	}
	return nil
}

func (s *shell) object(word, namespace, name string) error {
	gvk, err := s.kinds.KindFor(schema.ParseGroupResource(word).WithVersion(""))
	if err != nil {
		return err
	}
	if name == "" || s.exists == nil {
		return nil
	}
	return s.exists(describe.Ref{Kind: gvk.Kind, APIVersion: gvk.GroupVersion().String(), Namespace: namespace, Name: name})
}

// split splits a command into words, as a shell does.
func split(text string) ([]string, error) {
	var words []string
	word, quoted := "", false
	for _, r := range text + " " {
		switch {
		case r == '\'':
			quoted = !quoted
		case r != ' ' || quoted:
			word += string(r)
		case word != "":
			words, word = append(words, word), ""
		}
	}
	if quoted {
		return nil, fmt.Errorf("%s: a quote is open", text)
	}
	return words, nil
}

// exists is an error if an object does not exist. All clusters of a situation are one.
func (w *world) exists(ctx context.Context) func(describe.Ref) error {
	return func(ref describe.Ref) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		err := w.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no %s in namespace %q", ref, ref.Namespace)
		}
		return err
	}
}

// What is wrong with a command is found.
func TestCommandsAreJudged(t *testing.T) {
	install(t, testenv.Client(t))
	s := newShell(t)
	s.files = []string{"c1.kubeconfig"}
	for _, right := range []string{
		"kubectl get pods -A | grep -e night-shift", "kubectl logs pod/web -n shop -c app --previous", "kubectl annotate deploy/web -n shop spillway.dev/pause-",
		"kubectl get secret/c1-kubeconfig -n shop -o go-template='{{.data.value | base64decode}}'", "spillway explain statefulset/a -n shop --kubeconfig c1.kubeconfig",
		"spillway fleet approve module/shop -n shop --stage canary --gate load", "kubectl get clusters.cluster.x-k8s.io/c1 -n shop --show-labels",
	} {
		if err := s.command(right); err != nil {
			t.Error(err)
		}
	}
	for _, wrong := range []string{
		"kubectl get pods -A | grep -e night-shift --kubeconfig c1.kubeconfig", "kubectl get manager/spillway", "kubectl get gitrepositorys -n shop",
		"kubectl get pods --kubeconfig c2.kubeconfig", "kubectl describe pod web", "kubectl frobnicate pod/web", "kubectl get pods --previous", "kubectl edit -n shop",
		"spillway fleet approve module/shop -n shop --door load", "spillway fleet approve -n shop", "spillway fleet", "spillway frobnicate", "kubectl get pods 'x", "flux get pods",
	} {
		if s.command(wrong) == nil {
			t.Errorf("nothing is wrong with: %s", wrong)
		}
	}
}
