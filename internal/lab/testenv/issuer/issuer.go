// Package issuer is an issuer of OpenID Connect for tests: it logs in whom a test names, and
// can do what an issuer must not.
package issuer

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const keyBits = 2048

// Claims are those of a token.
type Claims map[string]any

// Issuer is one that listens on loopback, by TLS.
type Issuer struct {
	*httptest.Server

	// ClientID and Secret are those of the only client.
	ClientID, Secret string

	mu     sync.Mutex
	now    func() time.Time
	key    *rsa.PrivateKey
	keys   int
	user   Claims
	change func(Claims)
	refuse string
	forge  bool
	codes  map[string]login
	asked  map[string]int
}

// login is one of a user, from the page of the issuer until its code is redeemed.
type login struct {
	user                       Claims
	nonce, challenge, redirect string
}

// New starts one that logs in a user with these claims.
func New(t testing.TB, user Claims) *Issuer {
	t.Helper()
	i := &Issuer{ClientID: "spillway", Secret: rand.Text(), now: time.Now, user: user, codes: map[string]login{}, asked: map[string]int{}}
	i.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("/authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("/keys", i.published)
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.asked[r.URL.Path]++
		i.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

// CAFile is a file with the certificate of the issuer.
func (i *Issuer) CAFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Rotate makes another key; the one before is not published any more.
func (i *Issuer) Rotate() {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		panic(err) // there is always randomness
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key = key
	i.keys++
}

// LogsIn has the issuer log in another user from now on.
func (i *Issuer) LogsIn(user Claims) { i.set(func() { i.user = user }) }

// GoesBy has tokens be issued by a clock.
func (i *Issuer) GoesBy(now func() time.Time) { i.set(func() { i.now = now }) }

// Refuses has the issuer refuse logins, with this error; with none it does again.
func (i *Issuer) Refuses(why string) { i.set(func() { i.refuse = why }) }

// Changes changes what is in tokens; nil does not.
func (i *Issuer) Changes(change func(Claims)) { i.set(func() { i.change = change }) }

// Forges has tokens signed with a key that is not published.
func (i *Issuer) Forges(is bool) { i.set(func() { i.forge = is }) }

// Asked is how often a path was asked for.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// Token is one of the user that is logged in, as a program has it.
func (i *Issuer) Token() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sign(login{user: i.user})
}

func (i *Issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"},
		"subject_types_supported": []string{"public"}, "code_challenge_methods_supported": []string{"S256"},
	})
}

// authorize leads back with a code, as the issuer's page does once the user has logged in.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	query, back := r.URL.Query(), url.Values{}
	back.Set("state", query.Get("state"))
	switch {
	case i.refuse != "":
		back.Set("error", i.refuse)
	case query.Get("client_id") != i.ClientID, query.Get("response_type") != "code", query.Get("code_challenge_method") != "S256":
		back.Set("error", "invalid_request")
	default:
		code := rand.Text()
		i.codes[code] = login{maps.Clone(i.user), query.Get("nonce"), query.Get("code_challenge"), query.Get("redirect_uri")}
		back.Set("code", code)
	}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
}

// token redeems a code, once.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	if id == "" {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	code := r.PostFormValue("code")
	of, known := i.codes[code]
	delete(i.codes, code)
	verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != i.ClientID || secret != i.Secret:
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
	case !known || of.redirect != r.PostFormValue("redirect_uri") || encoded(verifier[:]) != of.challenge:
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
	default:
		answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "id_token": i.sign(of)})
	}
}

// sign makes the token of a login.
func (i *Issuer) sign(of login) string {
	now := i.now()
	claims := Claims{"iss": i.URL, "aud": i.ClientID, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "nonce": of.nonce}
	maps.Copy(claims, of.user)
	if i.change != nil {
		i.change(claims)
	}
	key := i.key
	if i.forge {
		key, _ = rsa.GenerateKey(rand.Reader, keyBits) // there is always randomness
	}
	text := part(map[string]any{"alg": "RS256", "typ": "JWT", "kid": fmt.Sprint(i.keys)}) + "." + part(claims)
	hash := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, hash[:])
	if err != nil {
		panic(err) // the key is long enough
	}
	return text + "." + encoded(signature)
}

func (i *Issuer) published(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"keys": []map[string]any{{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": fmt.Sprint(i.keys),
		"n": encoded(i.key.N.Bytes()), "e": encoded(big.NewInt(int64(i.key.E)).Bytes()),
	}}})
}

func part(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // of what tests write
	}
	return encoded(raw)
}

func encoded(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // else the client is gone
}
