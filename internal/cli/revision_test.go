package cli_test

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spillway-dev/spillway/internal/describe/history"
)

// rollback-to-kept OBJECT: roll an object back to the content that is kept and is not the
// present one, as history tells it.
func rollbackToKept(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: rollback-to-kept OBJECT")
	}
	entries := entriesOf(ts, args[0])
	for i := range entries {
		if entries[i].Outcome == "Kept" {
			digest := strings.TrimPrefix(entries[i].What, "content ")
			ts.Check(ts.Exec("spillway", "rollback", args[0], "--to", digest[:7], "-n", ts.Getenv("NS"), "--reason", "the password is wrong"))
			return
		}
	}
	ts.Fatalf("no content is kept: %v", entries)
}

// execution INSTANCE N VARIABLE: set a variable to the UID of one of the executions in the
// history, of which the newest is number 0.
func execution(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: execution INSTANCE N VARIABLE")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	entries := entriesOf(ts, "instance/"+args[0])
	if n >= len(entries) {
		ts.Fatalf("there are %d executions", len(entries))
	}
	ts.Setenv(args[2], entries[n].UID)
}

// entriesOf are the entries of an object's history.
func entriesOf(ts *testscript.TestScript, object string) []history.Entry {
	a := ask(ts, []string{"spillway", "history", object, "-n", ts.Getenv("NS"), "-o", "json"})
	if a.Code != 0 {
		ts.Fatalf("history of %s: %s", object, a.Err)
	}
	var entries []history.Entry
	ts.Check(json.Unmarshal(a.Out, &entries))
	return entries
}
