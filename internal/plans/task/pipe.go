package task

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/pipe"
	"github.com/spillway-dev/spillway/internal/plans/write"
)

// defaultPipeImage keeps the Pod of a Pipe running while files are read.
const defaultPipeImage = "busybox:1.37"

// pipeTask runs a Pod that makes files, keeps these in Secrets and ConfigMaps, and is
// done when all files are kept and the Pod is deleted.
type pipeTask struct{}

func (pipeTask) assess(w *work) Finding {
	if err := checkPipe(w.spec); err != nil {
		return fatal("task %s: %s", w.name, err)
	}
	pod, err := w.pipePod()
	if err != nil {
		return unrenderable(fmt.Errorf("task %s: %w", w.name, err))
	}
	f := Finding{}
	extraction, kept := w.extraction(&f)
	switch {
	case !f.IsDone():
	case kept:
		w.remove(&f, object.RefOf(pod))
	default:
		w.runPod(&f, pod, extraction)
	}
	return f
}

func checkPipe(spec v1beta1.TaskSpec) error {
	if len(spec.Pipe) == 0 {
		return errors.New("no files to keep; list them under pipe")
	}
	keys := map[string]string{}
	for _, file := range spec.Pipe {
		name := artifact(file.Key)
		other, taken := keys[name]
		keys[name] = file.Key
		switch {
		case taken:
			return fmt.Errorf("pipe %s needs another key: the names of objects have only its letters and digits, and those of %s are the same", file.Key, other)
		case file.Key != "" && name == "":
			return fmt.Errorf("pipe %s needs another key, with letters or digits", file.Key)
		case file.Key == "":
			return errors.New("each file of a pipe needs a key")
		case (file.File == "") == (file.EnvFile == ""):
			return fmt.Errorf("pipe %s needs either a file or an envFile", file.Key)
		case file.Kind != "Secret" && file.Kind != "ConfigMap":
			return fmt.Errorf("pipe %s: kind must be Secret or ConfigMap", file.Key)
		}
	}
	return nil
}

// extraction is what to read, and whether all of it is kept already.
func (w *work) extraction(f *Finding) (e *pipe.Extraction, kept bool) {
	e, kept = &pipe.Extraction{Container: pipe.Container}, true
	for i, u := range w.artifacts() {
		file := &w.spec.Pipe[i]
		w.enhance(u, object.Namespaced)
		ref := object.RefOf(u)
		live, read := w.live(f, ref)
		switch {
		case !read:
			continue
		case live != nil && w.o.title(live, false) != own:
			f.Blocked = w.blocked(ref, live)
			continue
		}
		f.Applies = append(f.Applies, ref)
		kept = kept && live != nil && w.isApplied(live)
		e.Files = append(e.Files, pipe.File{Path: file.File + file.EnvFile, Env: file.EnvFile != "", Object: u})
	}
	return e, kept
}

// runPod runs the Pod until its files can be read.
func (w *work) runPod(f *Finding, pod *unstructured.Unstructured, e *pipe.Extraction) {
	ref := object.RefOf(pod)
	live, read := w.live(f, ref)
	if !read {
		return
	}
	f.Applies = append(f.Applies, ref)
	switch {
	case live == nil:
		f.Writes = append(f.Writes, write.Write{Act: write.Apply, Ref: ref, Object: pod})
	case live.GetDeletionTimestamp() != nil:
		f.lackf("waiting for the old %s to be deleted%s", ref, holders(live))
	case w.o.title(live, false) == foreign:
		f.Blocked = w.blocked(ref, live)
	case !w.isApplied(live):
		f.Writes = append(f.Writes, write.Write{Act: write.Delete, Ref: ref, UID: live.GetUID()})
	default:
		w.read(f, ref, live, e)
	}
}

func (w *work) read(f *Finding, ref object.Ref, live *unstructured.Unstructured, e *pipe.Extraction) {
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	v := judgeStatus(ref, live)
	switch {
	case phase == "Failed":
		f.Fatal = fmt.Sprintf("%s failed", ref)
	case phase != "Running" || v.lacks != "":
		f.lackf("waiting for %s to be ready", ref)
	default:
		f.Writes = append(f.Writes, write.Write{Act: write.Extract, Ref: ref, UID: live.GetUID(), Extraction: e})
	}
}

// pipePod is the Pod of the template, with a container that keeps it running.
func (w *work) pipePod() (*unstructured.Unstructured, error) {
	objects, err := w.named(w.podName(), []string{w.spec.Pod})
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 || objects[0].GroupVersionKind().GroupKind() != object.PodKind {
		return nil, fmt.Errorf("template %s must be one Pod", w.spec.Pod)
	}
	pod := objects[0]
	mounts, err := pipeMounts(pod, w.spec.Pipe)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", w.spec.Pod, err)
	}
	image := w.o.PipeImage
	if image == "" {
		image = defaultPipeImage
	}
	keeper := map[string]any{
		"name": pipe.Container, "image": image, "command": []any{"sleep", "infinity"}, "volumeMounts": mounts,
	}
	if err := unstructured.SetNestedSlice(pod.Object, []any{keeper}, "spec", "containers"); err != nil {
		return nil, fmt.Errorf("template %s: %w", w.spec.Pod, err)
	}
	pod.SetName(w.podName())
	w.enhance(pod, object.Namespaced)
	return pod, nil
}

// pipeMounts is the mount of the volume of the files, as the initContainer has it.
func pipeMounts(pod *unstructured.Unstructured, files []v1beta1.PipeFile) ([]any, error) {
	makers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "initContainers")
	others, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	if len(makers) != 1 || len(others) != 0 {
		return nil, errors.New("needs exactly one initContainer, which makes the files, and no container")
	}
	volume, err := emptyDir(pod)
	if err != nil {
		return nil, err
	}
	maker, _ := makers[0].(map[string]any)
	mounts, _, _ := unstructured.NestedSlice(maker, "volumeMounts")
	for _, m := range mounts {
		mount, ok := m.(map[string]any)
		if ok && mount["name"] == volume {
			return []any{mount}, within(mount["mountPath"], files)
		}
	}
	return nil, fmt.Errorf("its initContainer does not mount volume %s", volume)
}

func emptyDir(pod *unstructured.Unstructured) (string, error) {
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	var names []string
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		if _, ok := volume["emptyDir"]; ok {
			names = append(names, fmt.Sprint(volume["name"]))
		}
	}
	if len(names) != 1 {
		return "", errors.New("needs exactly one volume of type emptyDir, for the files")
	}
	return names[0], nil
}

// within checks that the files are in the volume.
func within(mountPath any, files []v1beta1.PipeFile) error {
	root, _ := mountPath.(string)
	for _, file := range files {
		name := file.File + file.EnvFile
		if !strings.HasPrefix(path.Clean(name), strings.TrimSuffix(path.Clean(root), "/")+"/") {
			return fmt.Errorf("file %s is not in %s, where the volume is mounted", name, root)
		}
	}
	return nil
}

// pipesOf are the names of all objects that the Pipes of a plan keep, by key.
func pipesOf(instance, plan string, version *v1beta1.OperatorVersionSpec) map[string]string {
	pipes := map[string]string{}
	for _, t := range version.Tasks {
		if t.Kind != v1beta1.PipeTask {
			continue
		}
		for _, phase := range version.Plans[plan].Phases {
			for _, step := range phase.Steps {
				if slices.Contains(step.Tasks, t.Name) {
					keepPipes(pipes, &t, instance, plan, phase.Name, step.Name)
				}
			}
		}
	}
	return pipes
}

// keepPipes adds the names of the objects that a task keeps in one step of a plan.
func keepPipes(pipes map[string]string, t *v1beta1.Task, instance, plan, phase, step string) {
	for _, file := range t.Spec.Pipe {
		pipes[file.Key] = artifact(instance, plan, phase, step, t.Name, file.Key)
	}
}

// artifacts are the objects that keep the files of a Pipe, empty except for their names.
func (w *work) artifacts() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, file := range w.spec.Pipe {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: file.Kind})
		u.SetName(w.artifact(file.Key))
		all = append(all, u)
	}
	return all
}

// podName is the name of the Pod of a Pipe.
func (w *work) podName() string { return w.artifact("pipepod") }

// artifact returns the name of the object that keeps a file.
func (w *work) artifact(key string) string {
	return artifact(w.o.Instance.Name, w.Execution.Plan, w.phase, w.step, w.name, key)
}

// artifact is the name that KUDO gives: of each part only its letters and digits.
func artifact(parts ...string) string {
	for i := range parts {
		parts[i] = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, strings.ToLower(parts[i]))
	}
	return strings.Join(parts, ".")
}
