package hosted

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// sessionCookie keeps who has logged in, loginCookie a login under way. With this prefix
	// a browser takes them from this very host alone, by TLS.
	sessionCookie, loginCookie = "__Host-spillway", "__Host-spillway-login"
	// cookieBytes is how long the value of a cookie may be: browsers drop longer ones.
	cookieBytes = 3800
	// endedSessions is how many are remembered after a logout.
	endedSessions = 10_000
)

// Sessions says how long one lasts.
type Sessions struct {
	// Lifetime is how long at most, Idle how long without a page being opened.
	Lifetime, Idle time.Duration
}

// session is what a cookie keeps of who has logged in.
type session struct {
	Person

	ID string `json:"i"`
	// Began is when she logged in, Used when she last opened a page; in seconds.
	Began int64 `json:"b"`
	Used  int64 `json:"n"`
}

var (
	errNoSession = errors.New("you are not logged in, or your session has ended; open the page again to log in")
	errTooLong   = errors.New("your groups do not fit into a cookie; name the groups that matter with --groups")
)

// ends is when the session ends if no page is opened any more.
func (s *Sessions) ends(of *session) time.Time {
	idle, last := time.Unix(of.Used, 0).Add(s.Idle), time.Unix(of.Began, 0).Add(s.Lifetime)
	if idle.Before(last) {
		return idle
	}
	return last
}

// safe seals cookies.
type safe struct {
	// ciphers has the one that seals first; each of them reads.
	ciphers []cipher.AEAD

	mu sync.Mutex
	// ended are the sessions that were logged out here, until they would have ended. Those that
	// had begun by the second before have ended all.
	ended  map[string]time.Time
	before int64
}

func newSafe(keys *Keys) (*safe, error) {
	ciphers, err := keys.ciphers()
	return &safe{ciphers: ciphers, ended: map[string]time.Time{}}, err
}

// seal seals a value for a purpose, such as a cookie.
func (s *safe) seal(purpose string, value any) (string, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("write a cookie: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(s.ciphers[0].Seal(nil, nil, raw, []byte(purpose))) //nolint:gosec // the cipher chooses the nonce
	if len(text) > cookieBytes {
		return "", errTooLong
	}
	return text, nil
}

// unseal reads a cookie of a request; it is false of one that was not sealed here for this.
func (s *safe) unseal(r *http.Request, cookie string, value any) bool {
	c, err := r.Cookie(cookie)
	return err == nil && s.read(cookie, c.Value, value)
}

// read reads what was sealed here for a purpose.
func (s *safe) read(purpose, text string, value any) bool {
	if len(text) > cookieBytes {
		return false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return false
	}
	for _, c := range s.ciphers {
		if raw, err := c.Open(nil, nil, sealed, []byte(purpose)); err == nil {
			return json.Unmarshal(raw, value) == nil
		}
	}
	return false
}

// end ends a session, also of a browser that has kept the cookie. If too many have ended to
// remember them, all do.
func (s *safe) end(id string, now, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ended) >= endedSessions {
		for id, until := range s.ended {
			if until.Before(now) {
				delete(s.ended, id)
			}
		}
	}
	if len(s.ended) >= endedSessions {
		s.before = now.Unix()
		clear(s.ended)
	}
	s.ended[id] = until
}

func (s *safe) hasEnded(of *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ended := s.ended[of.ID]
	return ended || of.Began <= s.before
}

// setCookie sets one that scripts do not see, and that other sites send at most by leading a
// person here: with Strict, the answer of the issuer would not come with it.
func setCookie(w http.ResponseWriter, name, value string, age time.Duration) {
	c := &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(age.Seconds())}
	if age <= 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

const (
	// secretBytes is how long a secret is at least, keyBytes how long the keys are that are
	// derived from it: those of AES-256.
	secretBytes, keyBytes = 32, 32
	// forCookies and forForms tell the keys apart that are derived from one secret.
	forCookies, forForms = "spillway dashboard cookies", "spillway dashboard forms"
)

// Keys are the secrets that cookies and forms are sealed with: by the first one. What another
// one has sealed is still read, so that the first one can be replaced without ending sessions.
type Keys struct{ secrets [][]byte }

// NewKeys makes one that only this process has: sessions end with it.
func NewKeys() *Keys { return &Keys{[][]byte{[]byte(rand.Text() + rand.Text())}} }

// ParseKeys reads one from each line.
func ParseKeys(text string) (*Keys, error) {
	k := &Keys{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(line) < secretBytes {
			return nil, fmt.Errorf("a key has %d characters, fewer than %d; make one with openssl rand -base64 32", len(line), secretBytes)
		}
		k.secrets = append(k.secrets, []byte(line))
	}
	if len(k.secrets) == 0 {
		return nil, fmt.Errorf("there is no key; make one with openssl rand -base64 32")
	}
	return k, nil
}

// ciphers are what cookies are sealed and read with.
func (k *Keys) ciphers() ([]cipher.AEAD, error) {
	all := make([]cipher.AEAD, len(k.secrets))
	for i, secret := range k.secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, forCookies, keyBytes)
		if err != nil {
			return nil, fmt.Errorf("make a key for cookies: %w", err)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("make a key for cookies: %w", err)
		}
		if all[i], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("make a key for cookies: %w", err)
		}
	}
	return all, nil
}

// forms is what the tokens of forms are made with.
func (k *Keys) forms() ([]byte, error) {
	key, err := hkdf.Key(sha256.New, k.secrets[0], nil, forForms, keyBytes)
	if err != nil {
		return nil, fmt.Errorf("make a key for forms: %w", err)
	}
	return key, nil
}
