package pipe

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// container is an exec endpoint that speaks as the API server does, for a program
// that says this and ends so.
type container struct {
	out, err string
	end      metav1.Status
	asked    url.URL
}

func (c *container) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked = *r.URL
	channels := []wsstream.ChannelType{wsstream.IgnoreChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.IgnoreChannel}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{"v5.channel.k8s.io": {Binary: true, Channels: channels}})
	_, streams, err := conn.Open(w, r)
	if err != nil {
		return
	}
	_, _ = io.WriteString(streams[1], c.out)
	_, _ = io.WriteString(streams[2], c.err)
	end, err := json.Marshal(c.end)
	if err != nil {
		panic(err) // it is made here
	}
	_, _ = streams[3].Write(end)
	_ = conn.Close()
}

func (c *container) read(t *testing.T, limit int) (string, error) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	files, err := NewExecFiles(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	content, err := files.Read(t.Context(), "shop", "pod", Container, "/tmp/a file", limit)
	return string(content), err
}

var success = metav1.Status{Status: metav1.StatusSuccess}

func TestFilesAreReadByExec(t *testing.T) {
	for name, content := range map[string]string{"text": "hello\n", "nothing": "", "bytes": "\x00\xff\x01"} {
		t.Run(name, func(t *testing.T) {
			c := &container{out: content, err: "not the file", end: success}
			got, err := c.read(t, 100)
			if err != nil || got != content {
				t.Errorf("%q, %v", got, err)
			}
			if c.asked.Path != "/api/v1/namespaces/shop/pods/pod/exec" {
				t.Error(c.asked.Path)
			}
			if command := c.asked.Query()["command"]; !slices.Equal(command, []string{"head", "-c", "100", "/tmp/a file"}) {
				t.Error(command)
			}
			if q := c.asked.Query(); q.Get("tty") != "" || q.Get("stdin") != "" || q.Get("container") != Container {
				t.Error(q)
			}
		})
	}
}

func TestAFileThatIsTooLongIsNotReadWhole(t *testing.T) {
	c := &container{out: strings.Repeat("x", 5000), end: success}
	if got, err := c.read(t, 10); err != nil || len(got) != 10 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestAProgramThatFailsSaysWhy(t *testing.T) {
	c := &container{err: "head: /tmp/a file: No such file or directory\n", end: metav1.Status{
		Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: "command terminated with non-zero exit code",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: "1"}}},
	}}
	if _, err := c.read(t, 10); err == nil || !strings.Contains(err.Error(), "No such file or directory") {
		t.Error(err)
	}
}

func TestANodeThatCannotBeReachedIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "dial tcp: no such host", http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	files, err := NewExecFiles(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Read(context.Background(), "shop", "pod", Container, "/tmp/x", 10); err == nil {
		t.Error("no error")
	}
}
