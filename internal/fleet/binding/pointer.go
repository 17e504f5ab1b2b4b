package binding

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spillway-dev/spillway/internal/message"
)

// errEmptyPath: the empty pointer is the whole object, which is no value.
var errEmptyPath = errors.New("must not be empty; name a field, such as /data/region")

// errUnset: the object may have the field one day.
var errUnset = errors.New("the field is not set")

func isUnset(err error) bool { return errors.Is(err, errUnset) }

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// lookup is what a JSON pointer (RFC 6901) points to.
func lookup(content map[string]any, pointer string) (any, error) {
	if pointer == "" {
		return nil, errEmptyPath
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, errors.New("a JSON pointer begins with /, as in /data/region")
	}
	var at any = content
	seen := 0
	for token := range strings.SplitSeq(pointer[1:], "/") {
		seen += 1 + len(token)
		var err error
		if at, err = step(at, unescape.Replace(token)); err != nil {
			return nil, fmt.Errorf("there is no %s: %w", pointer[:seen], err)
		}
	}
	if at == nil {
		return nil, fmt.Errorf("%s is null", pointer)
	}
	return at, nil
}

// step goes one level down.
func step(at any, token string) (any, error) {
	switch at := at.(type) {
	case map[string]any:
		if v, ok := at[token]; ok {
			return v, nil
		}
		return nil, errUnset
	case []any:
		i, err := strconv.ParseUint(token, 10, 31)
		if err != nil || token != strconv.FormatUint(i, 10) {
			return nil, fmt.Errorf("%s is not an index of a list", message.Quote(token))
		}
		if i >= uint64(len(at)) {
			return nil, fmt.Errorf("the list has %d elements", len(at))
		}
		return at[i], nil
	default:
		return nil, errors.New("the value has no fields")
	}
}
