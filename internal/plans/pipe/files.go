package pipe

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

// execFiles runs a program in the container, over a WebSocket and without a terminal.
type execFiles struct {
	config *rest.Config
	pods   rest.Interface
}

// NewExecFiles reads files by the exec endpoint of the API server.
func NewExecFiles(config *rest.Config, c *http.Client) (Files, error) {
	set, err := kubernetes.NewForConfigAndClient(config, c)
	if err != nil {
		return nil, fmt.Errorf("set up the client for Pods: %w", err)
	}
	return execFiles{config: config, pods: set.CoreV1().RESTClient()}, nil
}

// Read implements [Files]. The standard error of the program is part of the error,
// not of the file.
func (e execFiles) Read(ctx context.Context, namespace, pod, container, path string, limit int) ([]byte, error) {
	request := e.pods.Get().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Stdout: true, Stderr: true, Command: []string{"head", "-c", strconv.Itoa(limit), path},
	}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(e.config, http.MethodGet, request.URL().String())
	if err != nil {
		return nil, fmt.Errorf("set up exec: %w", err)
	}
	content, stderr := &limited{limit: limit}, &limited{limit: 1024}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: content, Stderr: stderr})
	if err != nil {
		return nil, fmt.Errorf("exec in Pod %s: %w%s", pod, err, detail(string(stderr.kept)))
	}
	return content.kept, nil
}

func detail(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return ": " + text
}

// limited keeps the first bytes that are written to it, and drops the others. It has
// only Write, so that io.Copy cannot bypass the limit.
type limited struct {
	kept  []byte
	limit int
}

// Write implements [io.Writer].
func (l *limited) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[:min(len(p), l.limit-len(l.kept))]...)
	return len(p), nil
}
