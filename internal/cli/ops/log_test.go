package ops

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// What users have written does not make a line of the log long, wherever it is in it.
func TestALineOfTheLogHasAnEnd(t *testing.T) {
	long := strings.Repeat("a", 200<<10)
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log, err := newLog(&out, format, "info")
		if err != nil {
			t.Fatal(err)
		}
		log.WithValues("group", long).Error(errors.New(long), long, "key", types.NamespacedName{Name: long})
		if out.Len() > 10<<10 {
			t.Errorf("%s: a line of %d bytes", format, out.Len())
		}
		out.Reset()
		log.Info("write made", "object", types.NamespacedName{Namespace: "a", Name: "b"})
		if want := "a/b"; format == "text" && !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
