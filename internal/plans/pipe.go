package plans

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

const (
	// PipeContainer is the container in a Pipe's Pod from which files are read.
	PipeContainer = "spillway-pipe"
	// MaxPipeFile is how long a file of a Pipe may be.
	MaxPipeFile = 1 << 20
	// defaultPipeImage keeps the Pod of a Pipe running while files are read.
	defaultPipeImage = "busybox:1.37"
)

// pipeTask runs a Pod that makes files, keeps these in Secrets and ConfigMaps,
// and is done when they are there and the Pod is gone again.
type pipeTask struct{}

// Extraction is what has to be read from a Pod.
type Extraction struct {
	// Container is where to read.
	Container string
	Files     []ExtractedFile
}

// ExtractedFile is a file, and the object to keep it in. See [ExtractedFile.Keep].
type ExtractedFile struct {
	// Path is absolute, in the container.
	Path string
	// Env: it has lines KEY=VALUE, each of which becomes a key.
	Env bool
	// Object is to be applied with what was read.
	Object *unstructured.Unstructured
}

func (pipeTask) look(w *work) finding {
	if err := checkPipe(w.spec); err != nil {
		return fatal("task %s: %s", w.name, err)
	}
	pod, err := w.pipePod()
	if err != nil {
		return fatal("task %s: %s", w.name, err)
	}
	f := finding{}
	extraction, kept := w.extraction(&f)
	switch {
	case !f.isDone():
	case kept:
		w.remove(&f, refOf(pod))
	default:
		w.runPod(&f, pod, extraction)
	}
	return f
}

func checkPipe(spec v1beta1.TaskSpec) error {
	if len(spec.Pipe) == 0 {
		return errors.New("has no files to keep; list them under pipe")
	}
	for _, file := range spec.Pipe {
		switch {
		case file.Key == "":
			return errors.New("each file of a pipe needs a key")
		case (file.File == "") == (file.EnvFile == ""):
			return fmt.Errorf("pipe %s needs either a file or an envFile", file.Key)
		case file.Kind != "Secret" && file.Kind != "ConfigMap":
			return fmt.Errorf("pipe %s has to be kept in a Secret or a ConfigMap", file.Key)
		}
	}
	return nil
}

// extraction is what has to be read, and whether all of it has been.
func (w *work) extraction(f *finding) (*Extraction, bool) {
	e, kept := &Extraction{Container: PipeContainer}, true
	for _, file := range w.spec.Pipe {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: file.Kind})
		u.SetName(w.artefact(file.Key))
		w.enhance(u, Namespaced)
		ref := refOf(u)
		live, seen := w.live(f, ref)
		switch {
		case !seen:
			continue
		case live != nil && !w.o.isOurs(live):
			f.blocked = w.foreign(ref)
			continue
		}
		f.applies = append(f.applies, ref)
		kept = kept && live != nil && w.isApplied(live)
		e.Files = append(e.Files, ExtractedFile{Path: file.File + file.EnvFile, Env: file.EnvFile != "", Object: u})
	}
	return e, kept
}

// artefact is the name of what keeps a file.
func (w *work) artefact(key string) string {
	return artefact(w.o.Instance.Name, w.run.execution.Plan, w.phase, w.step, w.name, key)
}

func artefact(parts ...string) string { return strings.ToLower(strings.Join(parts, ".")) }

// pipesOf are the names of all that the Pipes of a plan keep, by key.
func pipesOf(instance, name string, version *v1beta1.OperatorVersionSpec) map[string]string {
	pipes := map[string]string{}
	plan := version.Plans[name]
	for _, phase := range plan.Phases {
		for _, step := range phase.Steps {
			for _, t := range version.Tasks {
				if t.Kind != v1beta1.PipeTask || !slices.Contains(step.Tasks, t.Name) {
					continue
				}
				for _, file := range t.Spec.Pipe {
					pipes[file.Key] = artefact(instance, name, phase.Name, step.Name, t.Name, file.Key)
				}
			}
		}
	}
	return pipes
}

// runPod runs the Pod until its files can be read.
func (w *work) runPod(f *finding, pod *unstructured.Unstructured, e *Extraction) {
	ref := refOf(pod)
	live, seen := w.live(f, ref)
	if !seen {
		return
	}
	f.applies = append(f.applies, ref)
	switch {
	case live == nil:
		f.writes = append(f.writes, Write{Act: Apply, Ref: ref, Object: pod})
	case live.GetDeletionTimestamp() != nil:
		f.lackf("waiting for the old %s to be gone", ref)
	case !w.o.isOurs(live):
		f.blocked = w.foreign(ref)
	case !w.isApplied(live):
		f.writes = append(f.writes, Write{Act: Delete, Ref: ref, UID: live.GetUID()})
	default:
		w.read(f, ref, live, e)
	}
}

func (w *work) read(f *finding, ref Ref, live *unstructured.Unstructured, e *Extraction) {
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	v := judgeStatus(ref, live)
	switch {
	case phase == "Failed":
		f.fatal = fmt.Sprintf("%s has failed", ref)
	case phase != "Running" || v.lacks != "":
		f.lackf("waiting for %s to be ready", ref)
	default:
		f.writes = append(f.writes, Write{Act: Extract, Ref: ref, UID: live.GetUID(), Extraction: e})
	}
}

// pipePod is the Pod of the template, with a container that keeps it running.
func (w *work) pipePod() (*unstructured.Unstructured, error) {
	objects, err := w.objects([]string{w.spec.Pod})
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 || objects[0].GroupVersionKind().GroupKind() != podKind {
		return nil, fmt.Errorf("template %s has to be one Pod", w.spec.Pod)
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
		"name": PipeContainer, "image": image, "command": []any{"sleep", "infinity"}, "volumeMounts": mounts,
	}
	if err := unstructured.SetNestedSlice(pod.Object, []any{keeper}, "spec", "containers"); err != nil {
		return nil, fmt.Errorf("template %s: %w", w.spec.Pod, err)
	}
	pod.SetName(artefact(w.o.Instance.Name, w.run.execution.Plan, w.phase, w.step, w.name, "pipe"))
	w.enhance(pod, Namespaced)
	return pod, nil
}

// pipeMounts are where the container that makes the files mounts their volume.
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

// Keep is the object with the content of the file.
func (e ExtractedFile) Keep(content []byte) (*unstructured.Unstructured, error) {
	if len(content) > MaxPipeFile {
		return nil, fmt.Errorf("file %s is longer than %d bytes", e.Path, MaxPipeFile)
	}
	data := map[string][]byte{path.Base(e.Path): content}
	if e.Env {
		var err error
		if data, err = lines(content); err != nil {
			return nil, fmt.Errorf("file %s: %w", e.Path, err)
		}
	}
	u := e.Object.DeepCopy()
	for key, value := range data {
		keep(u, key, value)
	}
	return u, nil
}

func keep(u *unstructured.Unstructured, key string, value []byte) {
	field, text := "data", string(value)
	switch {
	case u.GetKind() == "Secret":
		text = base64.StdEncoding.EncodeToString(value)
	case !utf8.Valid(value):
		field, text = "binaryData", base64.StdEncoding.EncodeToString(value)
	}
	_ = unstructured.SetNestedField(u.Object, text, field, key) // it is made here
}

// lines are those of a file of KEY=VALUE.
func lines(content []byte) (map[string][]byte, error) {
	data := map[string][]byte{}
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, MaxPipeFile+1)
	for number := 1; scanner.Scan(); number++ {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, value, ok := bytes.Cut(line, []byte("="))
		if !ok {
			return nil, fmt.Errorf("line %d has to be KEY=VALUE", number)
		}
		data[string(bytes.TrimSpace(key))] = slices.Clone(value)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return data, nil
}
