package lifecycle

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	// mostLog bounds the log of a container, in bytes.
	mostLog = 10 << 20
	// shortestHidden is how long a value is at least that is hidden wherever it stands.
	shortestHidden = 4
)

type diagnosis struct {
	operation

	directory string
	since     time.Duration
	logs      kubernetes.Interface
	// secrets are values that are hidden wherever they stand.
	secrets []string
	files   map[string]string
	// missing is what could not be read.
	missing []string
}

func newDiagnostics(env command.Environment) *cobra.Command {
	d := &diagnosis{operation: operation{env: env}, files: map[string]string{}}
	cmd := &cobra.Command{
		Use: "diagnostics instance/NAME", Short: "Write what is known of an Instance to a directory, without secrets",
		Long: "Write the Instance, its Operator and OperatorVersion, the objects that it has applied, its\n" +
			"Pods with their logs, and Events to a directory, to find the cause of a failure or to hand it\n" +
			"to others. Values of Secrets, and of parameters that a user has set, are hidden wherever they\n" +
			"stand. What cannot be read is listed in missing.txt.",
		Example: "  spillway package diagnostics instance/zk -n shop --log-since 10m",
		Args:    command.Exactly(1, "name the Instance, as in: spillway package diagnostics instance/zk"),
		RunE:    d.connected(d.run),
	}
	d.addFlags(cmd)
	cmd.Flags().StringVarP(&d.directory, "output-directory", "O", "diag", "the directory to create")
	cmd.Flags().DurationVar(&d.since, "log-since", 0, "only logs that are newer, such as 10m; 0 is all")
	return cmd
}

func (d *diagnosis) run(ctx context.Context, args []string) error {
	config, err := d.cluster.RESTConfig()
	if err != nil {
		return err
	}
	if d.logs, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	i := d.instance(args[0])
	if err := act.Get(ctx, d.client, i); err != nil {
		return err
	}
	for _, spec := range specsOf(i) {
		for _, value := range spec.Parameters {
			d.hide(value)
		}
	}
	d.add("instance.yaml", i)
	version, err := d.versionAt(ctx, i.Namespace, &i.Spec)
	switch {
	case err != nil:
		d.lacks("operatorversion/"+i.Spec.OperatorVersion.Name, err)
	case version != nil:
		d.read(ctx, "operatorversion.yaml", object.Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("OperatorVersion"), Namespace: version.Namespace, Name: version.Name})
		d.read(ctx, "operator.yaml", object.Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("Operator"), Namespace: version.Namespace, Name: version.Spec.Operator.Name})
	}
	for _, entry := range i.Status.Inventory {
		ref := object.EntryRef(entry)
		d.read(ctx, filepath.Join("objects", strings.ToLower(ref.Kind)+"-"+ref.Name+".yaml"), ref)
	}
	d.pods(ctx, i)
	d.events(ctx, i)
	return d.write()
}

// specsOf are all specs that an Instance has, with the parameters that users have set.
func specsOf(i *v1beta1.Instance) []*v1beta1.InstanceSpec {
	s := &i.Status
	specs := []*v1beta1.InstanceSpec{&i.Spec, {Parameters: s.ImmutableParameters}}
	if s.LastAppliedInstanceSpec != nil {
		specs = append(specs, s.LastAppliedInstanceSpec)
	}
	if s.Execution != nil {
		specs = append(specs, &s.Execution.Spec)
	}
	if s.Attempted != nil {
		specs = append(specs, &s.Attempted.Spec)
	}
	for k := range s.History {
		if s.History[k].Spec != nil {
			specs = append(specs, s.History[k].Spec)
		}
	}
	return specs
}

// hide hides a value wherever it stands, unless it is too common for that.
func (d *diagnosis) hide(value string) {
	_, err := strconv.ParseFloat(value, 64)
	if len(value) >= shortestHidden && err != nil && value != "true" && value != "false" {
		d.secrets = append(d.secrets, value)
	}
}

// add keeps an object for a file. The values of a Secret are hidden in it and elsewhere.
func (d *diagnosis) add(file string, obj client.Object) {
	u, err := kube.Manifest(obj)
	if err != nil {
		d.lacks(file, err)
		return
	}
	u.SetManagedFields(nil)
	if isSecret(u) {
		data, _, _ := unstructured.NestedMap(u.Object, "data")
		for _, value := range data {
			text, _ := value.(string)
			if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
				d.hide(strings.TrimSpace(string(raw)))
			}
		}
		u, _ = withoutValues(u, nil)
	}
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		d.lacks(file, err)
		return
	}
	d.files[file] = string(raw)
}

func (d *diagnosis) lacks(what string, err error) {
	d.missing = append(d.missing, what+": "+command.PlainError(err).Error())
}

func (d *diagnosis) read(ctx context.Context, file string, ref object.Ref) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.GroupVersionKind)
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u); err != nil {
		d.lacks(ref.String(), err)
		return
	}
	d.add(file, u)
}

func (d *diagnosis) pods(ctx context.Context, i *v1beta1.Instance) {
	list := &corev1.PodList{}
	if err := d.client.List(ctx, list, client.InNamespace(i.Namespace), client.MatchingLabels{vocabulary.InstanceLabel: i.Name}); err != nil {
		d.lacks("pods", err)
		return
	}
	for k := range list.Items {
		pod := &list.Items[k]
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		d.add(filepath.Join("pods", pod.Name+".yaml"), pod)
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			d.log(ctx, pod, c.Name)
		}
	}
}

func (d *diagnosis) log(ctx context.Context, pod *corev1.Pod, container string) {
	most := int64(mostLog)
	options := &corev1.PodLogOptions{Container: container, LimitBytes: &most}
	if seconds := int64(d.since.Seconds()); seconds > 0 {
		options.SinceSeconds = &seconds
	}
	stream, err := d.logs.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		d.lacks("log of "+pod.Name+"/"+container, err)
		return
	}
	defer func() { _ = stream.Close() }()
	raw, err := io.ReadAll(io.LimitReader(stream, mostLog))
	if err != nil {
		d.lacks("log of "+pod.Name+"/"+container, err)
	}
	d.files[filepath.Join("pods", pod.Name+"-"+container+".log")] = string(raw)
}

func (d *diagnosis) events(ctx context.Context, i *v1beta1.Instance) {
	list := &corev1.EventList{}
	if err := d.client.List(ctx, list, client.InNamespace(i.Namespace)); err != nil {
		d.lacks("events", err)
		return
	}
	names := []string{i.Name}
	for _, entry := range i.Status.Inventory {
		names = append(names, entry.Name)
	}
	var text strings.Builder
	for k := range list.Items {
		e := &list.Items[k]
		about := func(name string) bool {
			return e.InvolvedObject.Name == name || strings.HasPrefix(e.InvolvedObject.Name, name+"-")
		}
		if slices.ContainsFunc(names, about) {
			_, _ = fmt.Fprintf(&text, "%s %s %s/%s %s: %s\n", e.LastTimestamp.Format(time.RFC3339), e.Type, strings.ToLower(e.InvolvedObject.Kind), e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	d.files["events.txt"] = text.String()
}

func (d *diagnosis) write() error {
	if len(d.missing) > 0 {
		d.files["missing.txt"] = strings.Join(d.missing, "\n") + "\n"
	}
	if err := os.Mkdir(d.directory, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s exists; name another directory with --output-directory", d.directory)
		}
		return fmt.Errorf("--output-directory: %w", err)
	}
	clean := d.redactor()
	for name, text := range d.files {
		path := filepath.Join(d.directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := os.WriteFile(path, []byte(clean.Replace(text)), 0o600); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	_, _ = fmt.Fprintf(d.out, "%d files written to %s; look through them before you hand them on\n", len(d.files), d.directory)
	return nil
}

// redactor hides what is to be hidden, as it is and in base64; what is longer comes first.
func (d *diagnosis) redactor() *strings.Replacer {
	slices.SortFunc(d.secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, secret := range slices.Compact(d.secrets) {
		pairs = append(pairs, secret, hiddenText, base64.StdEncoding.EncodeToString([]byte(secret)), hiddenText)
	}
	return strings.NewReplacer(pairs...)
}
