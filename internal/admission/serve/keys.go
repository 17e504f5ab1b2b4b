package serve

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

const (
	// keyLength is that of what NewKey makes.
	keyLength = 26
	// readPause is the least time between two reads of the keys, so that who asks with
	// invented ones causes no more than that.
	readPause = time.Second
	// keysTimeout bounds one read.
	keysTimeout = 3 * time.Second
)

// NewKey makes a key: 128 random bits, in characters that a path of a webhook may have.
func NewKey() string { return strings.ToLower(rand.Text()) }

// IsKey is true of what NewKey may have made.
func IsKey(text string) bool {
	return len(text) == keyLength && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Keys are what API servers show in the path. Who does not know one of them is answered
// blindly: see [admission.Route].
//
// A replica may learn of a new key later than an API server, which has it from a
// configuration. So a key that is not known is looked up where keys are written
// before they are used.
type Keys struct {
	known atomic.Pointer[[]string]
	// read reads them from the API server. Nil reads nothing.
	read func(context.Context) ([]string, error)

	mu sync.Mutex
	// next is closed when a read has ended that has not begun yet. Nil if none is to begin.
	next chan struct{}
	// last is when the last read began.
	last time.Time
}

// NewKeys are keys that are read so when an unknown one is shown.
func NewKeys(read func(context.Context) ([]string, error)) *Keys { return &Keys{read: read} }

// Accept makes these the keys.
func (k *Keys) Accept(keys []string) { k.known.Store(&keys) }

// Has is true if there is any.
func (k *Keys) Has() bool { known := k.known.Load(); return known != nil && len(*known) > 0 }

// knows is true if a key is one of those that are known.
func (k *Keys) knows(shown string) bool {
	known, found := k.known.Load(), 0
	if known == nil {
		return false
	}
	for _, key := range *known {
		found |= subtle.ConstantTimeCompare([]byte(key), []byte(shown))
	}
	return found == 1
}

// accepts is true if a key is one of those that are written down now.
func (k *Keys) accepts(ctx context.Context, shown string) bool {
	switch {
	case !IsKey(shown):
		return false
	case k.knows(shown):
		return true
	case k.read == nil:
		return false
	}
	select {
	case <-k.soon():
		return k.knows(shown)
	case <-ctx.Done():
		return false
	}
}

// soon is closed when keys were read that were written before now. All that wait
// meanwhile share one read.
func (k *Keys) soon() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next == nil {
		k.next = make(chan struct{})
		time.AfterFunc(time.Until(k.last.Add(readPause)), k.readAgain) //nolint:forbidigo // it bounds requests, and decides nothing
	}
	return k.next
}

func (k *Keys) readAgain() {
	k.mu.Lock()
	done := k.next
	k.next, k.last = nil, time.Now() //nolint:forbidigo // it bounds requests, and decides nothing
	k.mu.Unlock()
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), keysTimeout) //nolint:forbidigo // several requests wait for it
	defer cancel()
	if keys, err := k.read(ctx); err == nil {
		if known := k.known.Load(); known != nil {
			keys = append(keys, *known...)
		}
		slices.Sort(keys)
		k.Accept(slices.Compact(keys))
	}
}

// Clients are the API servers that show a certificate. Nil are none.
type Clients struct {
	file  string
	names []string

	mu          sync.Mutex
	modified    time.Time
	authorities *x509.CertPool
}

// NewClients reads the CAs of API servers from a file; an empty name is none.
func NewClients(file string, names []string) (*Clients, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // there are none
	}
	c := &Clients{file: file, names: names}
	return c, c.read()
}

// read reads the file if it is another one than before.
func (c *Clients) read() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.file)
	if err != nil {
		return fmt.Errorf("--webhook-client-ca: %w", err)
	}
	if c.authorities != nil && info.ModTime().Equal(c.modified) {
		return nil
	}
	raw, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("--webhook-client-ca: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(raw) {
		return errors.New("--webhook-client-ca: no certificate found in " + c.file)
	}
	c.modified, c.authorities = info.ModTime(), authorities
	return nil
}

// configure has clients asked for a certificate. None is required. The CAs are those that the file has when a
// client connects; while it cannot be read, those that it had.
func (c *Clients) configure(config *tls.Config, log logr.Logger) {
	if c == nil {
		return
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if err := c.read(); err != nil {
			log.Error(err, "CAs of API servers are those from before")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		of := config.Clone()
		of.ClientAuth, of.ClientCAs = tls.VerifyClientCertIfGiven, c.authorities
		return of, nil
	}
}

// include is true if a request came with the certificate of an API server.
func (c *Clients) include(r *http.Request) bool {
	if c == nil || r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	return len(c.names) == 0 || slices.Contains(c.names, r.TLS.VerifiedChains[0][0].Subject.CommonName)
}
