package manager

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// answerKept is how long the answer of the API server about a token is kept.
	answerKept = 30 * time.Second
	// tokensKept bounds how many answers are kept, and askedAtOnce how many are asked for
	// at a time: a client that can reach the port may send tokens.
	tokensKept  = 64
	askedAtOnce = 4
)

// metrics says how metrics are served.
func (o Options) metrics() server.Options {
	m := server.Options{BindAddress: o.MetricsAddress, SecureServing: o.MetricsSecure}
	if o.MetricsSecure {
		m.FilterProvider = authorized
	}
	return m
}

// authorized lets only clients get the metrics that the API server knows by their token,
// and that may get the path. The filter of controller-runtime answers an invalid token with
// status 500, logs each, and asks about any number of tokens at a time.
func authorized(config *rest.Config, http *http.Client) (server.Filter, error) {
	c, err := kubernetes.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("ask who may get metrics: %w", err)
	}
	a := &authorizer{client: c, answers: map[[sha256.Size]byte]answer{}, asked: make(chan struct{}, askedAtOnce)}
	return a.filter, nil
}

// authorizer asks the API server who a client is, and what it may do.
type authorizer struct {
	client kubernetes.Interface
	asked  chan struct{}

	mu      sync.Mutex
	answers map[[sha256.Size]byte]answer
}

// answer is what an HTTP status says of a token and a path, until it is asked for again.
type answer struct {
	status int
	until  time.Time
}

func (a *authorizer) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := a.statusOf(r)
		if err != nil {
			log.Error(err, "client of the metrics not authorized")
		}
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}

func (a *authorizer) statusOf(r *http.Request) (int, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return http.StatusUnauthorized, nil
	}
	key := sha256.Sum256([]byte(r.URL.Path + "\x00" + token))
	if status, known := a.recall(key); known {
		return status, nil
	}
	select {
	case a.asked <- struct{}{}:
		defer func() { <-a.asked }()
	default:
		return http.StatusTooManyRequests, nil
	}
	status, err := a.ask(r.Context(), token, r.URL.Path)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	a.keep(key, status)
	return status, nil
}

func (a *authorizer) recall(key [sha256.Size]byte) (status int, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.answers[key]
	return found.status, time.Now().Before(found.until) //nolint:forbidigo // no ring decides by it
}

func (a *authorizer) keep(key [sha256.Size]byte, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.answers) >= tokensKept {
		clear(a.answers)
	}
	a.answers[key] = answer{status: status, until: time.Now().Add(answerKept)} //nolint:forbidigo // as above
}

func (a *authorizer) ask(ctx context.Context, token, path string) (int, error) {
	who, err := a.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("review the token: %w", err)
	case !who.Status.Authenticated:
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("ask what %s may do: %w", user.Username, err)
	case !may.Status.Allowed:
		return http.StatusForbidden, nil
	default:
		return http.StatusOK, nil
	}
}
