package dashboard

import (
	"context"
	"net/http"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
)

// Source is where the pages get what they show to a viewer. All of it is read and done with
// her permissions.
type Source struct {
	// Place is what is shown, in words: "namespace shop of context prod".
	Place string
	// Namespace is the one that is shown, all if it is empty.
	Namespace string
	// First is the version before the first look: another one in each of several looks that
	// follow one another, so that clients of the former notice.
	First int
	// Now is the clock.
	Now func() time.Time
	// Changed says that something may have changed since the last look.
	Changed <-chan struct{}
	// Look describes all rollouts. Part, unless it is nil, receives what is known so far, in calls
	// that do not overlap and end before it does.
	Look func(ctx context.Context, part func(describe.Partial)) (describe.Description, error)
	// Of describes what is rolled for a ConfigMap or Secret, nil if nothing is; nil where
	// that is not drawn.
	Of func(context.Context, describe.Ref) (*describe.Unit, error)
	// Named is the object that a person means by KIND/NAME.
	Named func(namespace, object string) (describe.Ref, error)
	// Explain says why an object waits, History what was rolled of it.
	Explain func(context.Context, describe.Ref) (explain.Chain, error)
	History func(context.Context, describe.Ref) ([]history.Entry, error)
	// Forecast says what comes next in a namespace, in all if it is empty, of one object or of
	// all if that is empty: as things are, and if something happened.
	Forecast func(ctx context.Context, namespace, object string, ifs []forecast.Supposition) (forecast.Answer, error)
	// NoManager is why nothing of what is under way is carried out, empty if it is.
	NoManager func(ctx context.Context, underWay bool) string
	// Steering is what the viewer can do; nil of pages that only show.
	Steering
}

// Account is what people are shown of themselves where several people see the pages.
type Account struct {
	User   string
	Groups []string
	// Namespace is the one that they see, all if it is empty; Visible are others that they may see.
	Namespace string
	Visible   []string
	// Problem is why they do not see it, Ends when they have to log in again.
	Problem string
	Ends    time.Time
	// Token lets them log out; it is empty if they are not logged in here.
	Token string
}

// WriteAccount writes the page of an account, where people choose the namespace.
func WriteAccount(w http.ResponseWriter, status int, a *Account) {
	write(w, status, &view{file: "account", Title: "Account", Account: a.User, Of: a})
}
