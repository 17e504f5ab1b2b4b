package plans

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// Files reads files of containers.
type Files interface {
	// Read returns at most limit bytes of a file.
	Read(ctx context.Context, namespace, pod, container, path string, limit int) ([]byte, error)
}

// execFiles reads by running a program in the container, over a WebSocket and
// without a terminal.
type execFiles struct {
	config *rest.Config
	pods   rest.Interface
}

func newExecFiles(config *rest.Config, c *http.Client) (Files, error) {
	set, err := kubernetes.NewForConfigAndClient(config, c)
	if err != nil {
		return nil, fmt.Errorf("set up the client for Pods: %w", err)
	}
	return execFiles{config: config, pods: set.CoreV1().RESTClient()}, nil
}

// Read implements [Files]. What the program says on its standard error is part of
// the error, not of the file.
func (e execFiles) Read(ctx context.Context, namespace, pod, container, path string, limit int) ([]byte, error) {
	request := e.pods.Get().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Stdout: true, Stderr: true, Command: []string{"head", "-c", strconv.Itoa(limit), path},
	}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(e.config, http.MethodGet, request.URL().String())
	if err != nil {
		return nil, fmt.Errorf("set up exec: %w", err)
	}
	content, said := &limited{limit: limit}, &limited{limit: 1024}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: content, Stderr: said})
	if err != nil {
		return nil, fmt.Errorf("exec in Pod %s: %w%s", pod, err, saying(string(said.kept)))
	}
	return content.kept, nil
}

func saying(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return ": " + text
}

// limited keeps the first bytes that are written to it, and drops the others. It
// has no other way of being written to, which a copy might prefer.
type limited struct {
	kept  []byte
	limit int
}

// Write implements [io.Writer].
func (l *limited) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[:min(len(p), l.limit-len(l.kept))]...)
	return len(p), nil
}
