package source

import (
	"bytes"
	"encoding/json"
)

// chunk is the text of one document, and the line of the file in which it begins.
type chunk struct {
	first int
	text  []byte
}

// lines is how many lines the chunk has.
func (c chunk) lines() int {
	return 1 + bytes.Count(bytes.TrimSuffix(c.text, []byte("\n")), []byte("\n"))
}

// split takes a file apart into documents.
func split(raw []byte) []chunk {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if chunks, ok := splitJSON(raw); ok {
		return chunks
	}
	return splitYAML(raw)
}

// splitJSON takes apart JSON values that follow one another. It is not ok if the
// text is anything else, such as YAML that begins with a brace.
func splitJSON(raw []byte) ([]chunk, bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil, false
	}
	var chunks []chunk
	decoder := json.NewDecoder(bytes.NewReader(raw))
	for first, start := 1, 0; ; {
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return chunks, len(bytes.TrimSpace(raw[start:])) == 0
		}
		end := int(decoder.InputOffset())
		chunks = append(chunks, chunk{first: first, text: raw[start:end]})
		first, start = first+bytes.Count(raw[start:end], []byte("\n")), end
	}
}

// splitYAML takes documents apart where kubectl does: at lines of three dashes with
// nothing but a comment behind them.
func splitYAML(raw []byte) []chunk {
	chunks := []chunk{{first: 1}}
	start, number := 0, 0
	for line := range bytes.Lines(raw) {
		number++
		last := &chunks[len(chunks)-1]
		if isSeparator(line) {
			last.text = raw[start : start+len(last.text)]
			start += len(last.text) + len(line)
			chunks = append(chunks, chunk{first: number + 1})
			continue
		}
		last.text = raw[start : start+len(last.text)+len(line)]
	}
	return chunks
}

func isSeparator(line []byte) bool {
	rest, found := bytes.CutPrefix(line, []byte("---"))
	rest = bytes.TrimSpace(rest)
	return found && (len(rest) == 0 || rest[0] == '#')
}

// line is the line of the file that a line of the chunk is.
func (c chunk) line(inChunk int) int { return c.first + inChunk - 1 }
