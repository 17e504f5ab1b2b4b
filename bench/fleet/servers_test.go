package fleet_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// servers play the API servers of clusters with the manager that runs there: each has an
// address of its own, and one Assemblage, whose syncs succeed a moment after they were sent.
type servers struct {
	port string
	key  *rsa.PrivateKey

	mu sync.Mutex
	// has is the Assemblage of each, by the address, changed is closed when one changes.
	has     map[string]*v1alpha1.Assemblage
	changed chan struct{}
	// certificates are those of each.
	certificates map[string]*tls.Certificate
}

// serve plays servers at all addresses of loopback.
func serve(t *testing.T) *servers {
	t.Helper()
	s := &servers{has: map[string]*v1alpha1.Assemblage{}, certificates: map[string]*tls.Certificate{}, changed: make(chan struct{})}
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s.key, err = rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(listener.Addr().String())
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.certificate(hello.Conn.LocalAddr().String()), nil
		},
	}}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// certificate is that of a server, self-signed.
func (s *servers) certificate(address string) *tls.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.certificates[address]; c != nil {
		return c
	}
	host, _, _ := net.SplitHostPort(address)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(s.certificates) + 1)), Subject: pkix.Name{CommonName: "kubernetes"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.ParseIP(host)}, DNSNames: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &s.key.PublicKey, s.key)
	if err != nil {
		return nil
	}
	s.certificates[address] = &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: s.key}
	return s.certificates[address]
}

// kubeconfig is that of a server.
func (s *servers) kubeconfig(t *testing.T, i int) []byte {
	t.Helper()
	address := fmt.Sprintf("127.1.%d.%d:%s", i/250, i%250+1, s.port)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate(address).Certificate[0]})
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: "https://" + address, CertificateAuthorityData: ca}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: strings.Repeat("t", 900)}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// ServeHTTP answers what the hub asks of a cluster.
func (s *servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPatch:
		s.apply(w, r)
	case r.URL.Query().Get("watch") != "":
		s.watch(r.Context(), w, r.Host)
	case strings.Contains(r.URL.Path, "/assemblages/"):
		s.mu.Lock()
		a := s.has[r.Host]
		s.mu.Unlock()
		s.answer(w, a)
	}
}

func (s *servers) answer(w http.ResponseWriter, a *v1alpha1.Assemblage) {
	if a == nil {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}) //nolint:errchkjson // it can be written, and who does not read it has ended
		return
	}
	_ = json.NewEncoder(w).Encode(a) //nolint:errchkjson // it can be written, and who does not read it has ended
}

// apply keeps what is sent. A moment later it has succeeded.
func (s *servers) apply(w http.ResponseWriter, r *http.Request) {
	a := &v1alpha1.Assemblage{}
	if err := json.NewDecoder(r.Body).Decode(a); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	if was := s.has[r.Host]; was != nil {
		a.Generation, a.Status = was.Generation, was.Status
	}
	a.UID, a.Generation = types.UID(r.Host), a.Generation+1
	s.has[r.Host] = a
	s.mu.Unlock()
	s.answer(w, a)
	time.AfterFunc(latency(r.Host), func() { s.succeed(r.Host) })
}

func (s *servers) succeed(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.has[host].DeepCopy()
	now := metav1.NowMicro()
	a.Status = v1alpha1.AssemblageStatus{ObservedGeneration: a.Generation}
	for i := range a.Spec.Syncs {
		n := &a.Spec.Syncs[i]
		a.Status.Syncs = append(a.Status.Syncs, v1alpha1.SyncStatus{
			Name: n.Name, Revision: n.Revision, AssignedAt: n.AssignedAt, State: v1alpha1.StateSucceeded, LastTransitionTime: &now, LastSucceededRevision: n.Revision, Resolved: "v1@sha1:1",
		})
	}
	s.has[host] = a
	close(s.changed)
	s.changed = make(chan struct{})
}

// watch sends the Assemblage of a server whenever it changes.
func (s *servers) watch(ctx context.Context, w http.ResponseWriter, host string) {
	w.WriteHeader(http.StatusOK)
	var last *v1alpha1.Assemblage
	for {
		s.mu.Lock()
		now, changed := s.has[host], s.changed
		s.mu.Unlock()
		if now != last {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": now}) //nolint:errchkjson // it can be written, and who does not read it has ended
			last = now
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
