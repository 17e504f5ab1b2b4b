package dashboard

import (
	"net/http"
	"time"
)

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
