package outbound_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/outbound"
)

// TestMain makes names that end in .test resolve to what answers says.
func TestMain(m *testing.M) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go serveDNS(conn)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	code := m.Run()
	_ = conn.Close()
	os.Exit(code)
}

// addresses are those of the names that the DNS server of the tests knows.
var addresses = map[string]string{
	"local.test.": "127.0.0.1", "other.test.": "127.0.0.1", "metadata.test.": "169.254.169.254", "mapped.test.": "::ffff:169.254.169.254",
	"translated.test.": "64:ff9b::a9fe:a9fe", "six.test.": "::1", "zero.test.": "0.0.0.0", "private.test.": "10.96.0.1", "x.shop.svc.": "10.96.0.1", "x.y.shop.svc.": "10.96.0.1", "x.bank.svc.": "10.96.0.1",
	"api.test.": "34.118.224.1",
}

func serveDNS(conn net.PacketConn) {
	buffer := make([]byte, 1<<10)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return // it is closed
		}
		query := dnsmessage.Message{}
		if query.Unpack(buffer[:n]) != nil || len(query.Questions) != 1 {
			continue
		}
		reply, err := answerTo(&query).Pack()
		if err == nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
}

func answerTo(query *dnsmessage.Message) *dnsmessage.Message {
	q := query.Questions[0]
	reply := &dnsmessage.Message{Header: dnsmessage.Header{ID: query.ID, Response: true, Authoritative: true}, Questions: query.Questions}
	address, ok := addresses[strings.ToLower(q.Name.String())]
	if !ok {
		reply.RCode = dnsmessage.RCodeNameError
		return reply
	}
	addr := netip.MustParseAddr(address)
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch {
	case q.Type == dnsmessage.TypeA && addr.Is4():
		reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && addr.Is6():
		reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}}}
	}
	return reply
}

func hosts(t *testing.T, texts ...string) outbound.Network {
	t.Helper()
	h, err := outbound.ParseHosts(texts)
	if err != nil {
		t.Fatal(err)
	}
	return outbound.Network{Hosts: h}
}

func secret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "access", Annotations: map[string]string{"spillway.dev/gate-hosts": "127.0.0.1 local.test other.test"}},
		Data:       map[string][]byte{},
	}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// get sends a request, and returns the body of the response, or what went wrong, as a gate
// says it.
func get(ctx context.Context, t *testing.T, allowed outbound.Network, s *corev1.Secret, address string, change ...func(*http.Client)) string {
	t.Helper()
	u, err := outbound.ParseURL(address)
	if err != nil {
		return err.Error()
	}
	creds, err := outbound.CredentialsFor(s, u.Hostname())
	if err != nil {
		return err.Error()
	}
	client := outbound.Client(allowed, "shop", u.Hostname(), creds)
	if client.Timeout != outbound.Timeout {
		t.Errorf("a request may last %s", client.Timeout)
	}
	for _, f := range change {
		f(client)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		return creds.Redact(outbound.Describe(err))
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return creds.Redact(outbound.Describe(err))
	}
	return fmt.Sprintf("%d: %s", res.StatusCode, raw)
}

// raw serves connections with a function that writes what it likes once a request was read.
func raw(t *testing.T, reply func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					reply(conn)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// endlessly writes a text until the other side closes the connection.
func endlessly(begin, text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, err := io.WriteString(conn, begin)
		for many := strings.Repeat(text, 1+4096/len(text)); err == nil; {
			_, err = io.WriteString(conn, many)
		}
	}
}

func once(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

// TestHostileServers checks that no server makes a request read without end, and what the
// errors say.
func TestHostileServers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, test := range map[string]struct {
		reply func(net.Conn)
		want  string
	}{
		"a body as long as allowed":           {once(ok + "\r\n" + strings.Repeat("x", outbound.MaxResponse)), "200: " + strings.Repeat("x", outbound.MaxResponse)},
		"a body that is a byte longer":        {once(ok + "\r\n" + strings.Repeat("x", outbound.MaxResponse+1)), "the response is longer than 1048576 bytes"},
		"a body of 100 MB":                    {endlessly(ok+"Content-Length: 104857600\r\n\r\n", "x"), "the response is longer than 1048576 bytes"},
		"a body without end":                  {endlessly(ok+"\r\n", "x"), "the response is longer than 1048576 bytes"},
		"chunks without end":                  {endlessly(ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), "the response is longer than 1048576 bytes"},
		"a body that is cut short":            {once(ok + "Content-Length: 9\r\n\r\nx"), "unexpected EOF"},
		"a chunk of no size":                  {once(ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), "invalid byte in chunk length"},
		"a trailer without end":               {endlessly(ok+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n"), "http: suspiciously long trailer after chunked body"},
		"an extension of a chunk with no end": {endlessly(ok+"Transfer-Encoding: chunked\r\n\r\n1;", "x"), "header line too long"},
		"headers without end":                 {endlessly(ok, "X: y\r\n"), "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted"},
		"a header without end":                {endlessly(ok+"X: ", "y"), "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted"},
		"a status without end":                {endlessly("HTTP/1.1 200 ", "O"), "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted"},
		"early hints without end":             {endlessly("", "HTTP/1.1 103 Early Hints\r\n\r\n"), "net/http: "},
		"another protocol, and then silence": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}, "it changes the protocol (status 101), which is not HTTP any more"},
		"nothing":                            {once(""), "EOF"},
		"no HTTP":                            {once("220 smtp.test ESMTP\r\n"), `net/http: HTTP/1.x transport connection broken: malformed HTTP status code "smtp.test"`},
		"two lengths":                        {once(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx"), "net/http: HTTP/1.x transport connection broken: http: message cannot contain multiple Content-Length headers"},
		"a redirect":                         {once("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n"), "it redirects (status 302), which is not followed"},
		"a redirect to the metadata service": {once("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://169.254.169.254/\r\n\r\n"), "it redirects (status 307), which is not followed"},
		"a redirect to nowhere, with a body without end": {endlessly("HTTP/1.1 301 Moved\r\n\r\n", "x"), "it redirects (status 301), which is not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := get(t.Context(), t, hosts(t, "127.0.0.1"), nil, raw(t, test.reply))
			if !strings.HasPrefix(got, test.want) || len(got) > max(200, len(test.want)) {
				t.Errorf("%.300s\nwant %.300s", got, test.want)
			}
		})
	}
}

// TestSlowServers checks that a request ends in time, whatever part of the response is slow.
func TestSlowServers(t *testing.T) {
	drip := func(begin, text string) func(net.Conn) {
		return func(conn net.Conn) {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			_, err := io.WriteString(conn, begin)
			for i := 0; err == nil; i++ {
				<-tick.C
				_, err = conn.Write([]byte{text[i%len(text)]})
			}
		}
	}
	for name, reply := range map[string]func(net.Conn){
		"silence":      func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
		"slow status":  drip("", "HTTP/1.1 200 OOOOOOOOOOOO"),
		"slow headers": drip("HTTP/1.1 200 OK\r\n", "X: y\r\n"),
		"slow body":    drip("HTTP/1.1 200 OK\r\n\r\n", "x"),
		"slow chunks":  drip("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := get(t.Context(), t, hosts(t, "127.0.0.1"), nil, raw(t, reply), func(c *http.Client) { c.Timeout = 200 * time.Millisecond })
			if got != "no answer within 15s" {
				t.Error(got)
			}
		})
	}
}

// TestAddressesByName checks that what counts is the address that is connected to, by whatever
// name and in whatever notation.
func TestAddressesByName(t *testing.T) {
	t.Parallel()
	special := func(host, address string) string {
		return host + " has the address " + address + ", which is not one of a network; to permit it, name the address in --gate-hosts of the manager"
	}
	private := func(host, address string) string {
		return host + " has the private address " + address + "; to permit it, name the host in --gate-hosts of the manager"
	}
	for host, want := range map[string]string{
		"local.test":                 special("local.test", "127.0.0.1"),
		"metadata.test":              special("metadata.test", "169.254.169.254"),
		"METADATA.test.":             special("METADATA.test.", "169.254.169.254"),
		"mapped.test":                special("mapped.test", "169.254.169.254"),
		"translated.test":            special("translated.test", "64:ff9b::a9fe:a9fe"),
		"six.test":                   special("six.test", "::1"),
		"zero.test":                  special("zero.test", "0.0.0.0"),
		"private.test":               private("private.test", "10.96.0.1"),
		"169.254.169.254":            special("169.254.169.254", "169.254.169.254"),
		"[::ffff:169.254.169.254]":   special("::ffff:169.254.169.254", "169.254.169.254"),
		"[::ffff:a9fe:a9fe]":         special("::ffff:a9fe:a9fe", "169.254.169.254"),
		"[::ffff:0:169.254.169.254]": special("::ffff:0:169.254.169.254", "::ffff:0:a9fe:a9fe"),
		"[::169.254.169.254]":        special("::169.254.169.254", "::a9fe:a9fe"),
		"[2002:a9fe:a9fe::1]":        special("2002:a9fe:a9fe::1", "2002:a9fe:a9fe::1"),
		"[fe80::1%25lo]":             special("fe80::1%lo", "fe80::1%lo"),
		"[ff02::1%25lo]":             special("ff02::1%lo", "ff02::1%lo"),
		"[::ffff:10.96.0.1]":         private("::ffff:10.96.0.1", "10.96.0.1"),
		"[2002:a60:1::]":             private("2002:a60:1::", "2002:a60:1::"),
		"255.255.255.255":            special("255.255.255.255", "255.255.255.255"),
	} {
		got := get(t.Context(), t, outbound.Network{}, nil, "http://"+host+":1/")
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s\nwant %s", host, got, want)
		}
	}
	for _, host := range []string{"2130706433", "0x7f000001", "127.1", "0177.0.0.1"} { // as only some programs read addresses
		if got := get(t.Context(), t, outbound.Network{}, nil, "http://"+host+":1/"); !strings.Contains(got, "no such host") && !strings.Contains(got, "has the address 127.0.0.1") {
			t.Errorf("%s: %s", host, got)
		}
	}
}

// TestWhatIsAllowed checks which hosts of the flag allow which addresses.
func TestWhatIsAllowed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		allowed, host string
		want          bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.0/8", "127.0.0.1", true},
		{"127.0.0.1/8", "local.test", true},
		{"::ffff:127.0.0.1", "local.test", true},
		{"::ffff:127.0.0.0/104", "127.0.0.1", true},
		{"127.0.0.1", "[::ffff:127.0.0.1]", true},
		{"127.0.0.2", "local.test", false},
		{"local.test", "local.test", false}, // the owner of the name could make it that of the manager itself
		{"*.test", "local.test", false},
		{"::/0", "local.test", false},
	} {
		got := get(t.Context(), t, hosts(t, test.allowed), nil, "http://"+net.JoinHostPort(strings.Trim(test.host, "[]"), port))
		if is := strings.HasPrefix(got, "404"); is != test.want {
			t.Errorf("%s allows %s: %v, %s", test.allowed, test.host, is, got)
		}
	}
}

// services are the cluster IPs of the Services of namespace shop, and what reading one fails with.
type services struct {
	client.Reader

	ips map[string][]string
	err error
}

// Get implements [client.Reader].
func (s services) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	service, ok := obj.(*corev1.Service)
	ips, found := s.ips[key.Name]
	if s.err != nil || !ok || !found || key.Namespace != "shop" {
		return cmp.Or(s.err, error(apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, key.Name)))
	}
	service.Spec.ClusterIPs = ips
	return nil
}

// TestServices checks that a request reaches the Services of its namespace at their cluster IPs,
// and nothing else by their names: those of the type ExternalName lead anywhere.
func TestServices(t *testing.T) {
	t.Parallel()
	const refused = ", which is no cluster IP of a Service of that name in namespace shop; to permit it, name the host in --gate-hosts of the manager"
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "x", nil)
	for name, test := range map[string]struct {
		host     string
		services services
		want     string
	}{
		"its cluster IP":         {"x.shop.svc", services{ips: map[string][]string{"x": {"10.96.0.1"}}}, ""},
		"one of two":             {"x.shop.svc.", services{ips: map[string][]string{"x": {"fd00::1", "::ffff:10.96.0.1"}}}, ""},
		"another one":            {"x.shop.svc", services{ips: map[string][]string{"x": {"10.96.0.2"}}}, refused},
		"an ExternalName":        {"x.shop.svc", services{ips: map[string][]string{"x": nil}}, refused},
		"headless":               {"x.shop.svc", services{ips: map[string][]string{"x": {"None"}}}, refused},
		"a Pod of a Service":     {"x.y.shop.svc", services{ips: map[string][]string{"x": {"10.96.0.1"}, "y": {"10.96.0.1"}}}, refused},
		"no Service":             {"x.shop.svc", services{}, refused},
		"another namespace":      {"x.bank.svc", services{ips: map[string][]string{"x": {"10.96.0.1"}}}, "x.bank.svc has the private address 10.96.0.1; to permit it, name the host in --gate-hosts of the manager"},
		"not permitted to read":  {"x.shop.svc", services{err: forbidden}, "the manager may not get Services in namespace shop; run spillway install again, or name the host in --gate-hosts of the manager"},
		"the API server is gone": {"x.shop.svc", services{err: io.ErrUnexpectedEOF}, "get Service x: unexpected EOF"},
	} {
		got := get(t.Context(), t, outbound.Network{Services: test.services}, nil, "http://"+test.host+":1/", func(c *http.Client) { c.Timeout = 300 * time.Millisecond })
		if is := strings.Contains(got, "--gate-hosts") || strings.Contains(got, "get Service"); is != (test.want != "") || !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %s\nwant %s", name, got, test.want)
		}
	}
}

// TestHostsThatAreNone checks that they are refused, and which would do.
func TestHostsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "*", "a b", "http://prometheus", "prometheus:9090", "a_b", "-a", "*.*.svc", "a..b", "10.0.0.0/33", "[::1]"} {
		if _, err := outbound.ParseHosts([]string{text}); err == nil || !strings.HasSuffix(err.Error(), "is neither a name such as prometheus.monitoring.svc, an address, nor a network such as 10.0.0.0/8") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestURLs checks that the error about one does not repeat it.
func TestURLs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "/", "ftp://a/", "http://", "http://:80/", "http://alice:hunter22@a/", "http://alice@a/", "http://a:hunter22/", "http://a/%zz", "http://[::1", "http:a", "gopher://a", "http://a\nhunter22"} {
		if u, err := outbound.ParseURL(text); err == nil || err.Error() != "not an http or https URL without user and password" {
			t.Errorf("%q: %v, %v", text, u, err)
		}
	}
}

// TestTheEnvironmentIsNotAsked checks that no proxy is used, which would connect for the manager.
func TestTheEnvironmentIsNotAsked(t *testing.T) {
	proxy := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	if got := get(t.Context(), t, hosts(t, "127.0.0.1"), nil, "http://metadata.test/"); !strings.HasPrefix(got, "dial tcp") || !strings.Contains(got, "169.254.169.254") {
		t.Error(got)
	}
}

// TestTLS checks which servers are believed, and what is said of the others.
func TestTLS(t *testing.T) {
	t.Parallel()
	serve := func(change func(*tls.Config)) (url string, ca map[string]string) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS10}
		change(server.TLS)
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.URL, map[string]string{"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))}
	}
	url, ca := serve(func(*tls.Config) {})
	old, _ := serve(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 })
	mutual, _ := serve(func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "https://"))
	for name, test := range map[string]struct {
		url    string
		secret map[string]string
		want   string
	}{
		"a server that the Secret has the certificate of": {url, ca, "200: hello"},
		"one of an unknown authority":                     {url, nil, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"another name":                                    {"https://other.test:" + port, ca, "tls: failed to verify certificate: x509: certificate is valid for example.com, *.example.com, not other.test"},
		"an old version":                                  {old, ca, "remote error: tls: protocol version not supported"},
		"a certificate is required":                       {mutual, ca, "remote error: tls: certificate required"},
		"no TLS":                                          {strings.Replace(raw(t, once("")), "http:", "https:", 1), nil, "EOF"},
		"HTTP":                                            {strings.Replace(httpServer(t), "http:", "https:", 1), nil, "http: server gave HTTP response to HTTPS client"},
	} {
		var s *corev1.Secret
		if test.secret != nil {
			s = secret(test.secret)
		}
		if got := get(t.Context(), t, hosts(t, "127.0.0.1"), s, test.url); got != test.want {
			t.Errorf("%s: %s\nwant %s", name, got, test.want)
		}
	}
}

func httpServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL
}

// TestCredentialsAreNotRepeated checks that what a server says of the credentials that it got
// is in nothing that is returned, however it says it.
func TestCredentialsAreNotRepeated(t *testing.T) {
	t.Parallel()
	const password = `hunter"22\`
	for name, text := range map[string]string{
		"a status":       "HTTP/1.1 " + password + " OK\r\n\r\n",
		"a protocol":     password + "/1.1 200 OK\r\n\r\n",
		"a header":       "HTTP/1.1 200 OK\r\n" + password + "\r\n\r\n",
		"a length":       "HTTP/1.1 200 OK\r\nContent-Length: " + password + "\r\n\r\n",
		"an encoding":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + password + "\r\n\r\n",
		"a redirect":     "HTTP/1.1 302 Found\r\nLocation: http://" + password + "/\r\n\r\n",
		"a chunk's size": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + password + "\r\n",
	} {
		got := get(t.Context(), t, hosts(t, "127.0.0.1"), secret(map[string]string{"username": "alice", "password": password}), raw(t, once(text)))
		if strings.Contains(got, "hunter") || strings.HasPrefix(got, "200") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, token := range []string{"hunter\n22", "hunter\x0022"} { // which a header cannot have
		got := get(t.Context(), t, hosts(t, "127.0.0.1"), secret(map[string]string{"token": token}), raw(t, once("")))
		if strings.Contains(got, "hunter") || !strings.Contains(got, `invalid header field value for "Authorization"`) {
			t.Error(got)
		}
	}
}

// TestRedact checks that nothing is left of what is hidden, also where one hidden text is part of
// another, or overlaps with it.
func TestRedact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[ab"]{4,8}`), 1, 3).Draw(t, "hidden")
		around := rapid.SliceOfN(rapid.StringMatching(`[xy]{0,3}`), len(texts)+1, len(texts)+1).Draw(t, "around")
		creds, err := outbound.CredentialsFor(nil, "")
		if err != nil {
			t.Fatal(err)
		}
		said, want := around[0], strings.Join(around, "[redacted]")
		for i, text := range texts {
			creds.Hide(text)
			said += text + around[i+1]
		}
		for strings.Contains(want, "[redacted][redacted]") {
			want = strings.ReplaceAll(want, "[redacted][redacted]", "[redacted]")
		}
		if got := creds.Redact(said); got != want {
			t.Fatalf("%s: %s, want %s", said, got, want)
		}
	})
	if got := (*outbound.Credentials)(nil).Redact("x"); got != "x" {
		t.Error(got)
	}
}
