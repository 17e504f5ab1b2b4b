package testenv

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
)

// Line is the network to a control plane. Once it is cut it takes everything and delivers
// nothing: connections stay open, and none is refused.
type Line struct {
	cut  func()
	isUp func() bool
}

// Cut cuts the line for good.
func (l *Line) Cut() { l.cut() }

// KubeconfigByLine is [KubeconfigSecret] with a line of its own to the control plane.
func KubeconfigByLine(t testing.TB, namespace, cluster string, cp *controlplane.ControlPlane) (*corev1.Secret, *Line) {
	t.Helper()
	server, err := url.Parse(cp.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	l, address := newLine(t, server.Host)
	secret := KubeconfigSecret(t, namespace, cluster, cp)
	secret.Data["value"] = []byte(strings.ReplaceAll(string(secret.Data["value"]), server.Host, address))
	return secret, l
}

func newLine(t testing.TB, to string) (l *Line, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	off := make(chan struct{})
	l = &Line{cut: sync.OnceFunc(func() { close(off) }), isUp: func() bool {
		select {
		case <-off:
			return false
		default:
			return true
		}
	}}
	var ends sync.Map
	t.Cleanup(func() {
		shut(listener)
		ends.Range(func(end, _ any) bool {
			if c, ok := end.(io.Closer); ok {
				shut(c)
			}
			return true
		})
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				shut(near)
				continue
			}
			ends.Store(near, nil)
			ends.Store(far, nil)
			go l.carry(far, near)
			go l.carry(near, far)
		}
	}()
	return l, listener.Addr().String()
}

// carry copies until an end closes. Of what comes after the line was cut it delivers nothing.
func (l *Line) carry(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !l.isUp() {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			shut(to)
			shut(from)
			return
		}
	}
}

// shut closes what may be closed already.
func shut(c io.Closer) { _ = c.Close() }
