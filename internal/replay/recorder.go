package replay

import (
	"compress/gzip"
	"crypto/rand"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// MinSize is the smallest size: below, one decision of a large cluster would be a whole file.
const MinSize = 1 << 20

const (
	// parts is how many files a full record has. The oldest goes when there is one more.
	parts = 8
	// extension is that of the files, and pattern their names in the order in which they were written.
	extension = ".decisions"
	pattern   = "%09d" + extension
)

// Options say whether, and where, decisions are recorded.
type Options struct {
	// Dir is the folder, empty if nothing is recorded.
	Dir string
	// Size is how many bytes it has at most.
	Size int64
	// HideNames leaves out the names of objects and what users say.
	HideNames bool
	// Version is that of the program that decides.
	Version string
	Log     logr.Logger
}

// Recorder records decisions. It is safe for concurrent use.
type Recorder struct {
	options Options
	// key hides names.
	key []byte

	mu sync.Mutex
	// file is the present one, nil once the recorder has ended, and number is in its name.
	file   *stream
	number int
	// last is what was decided last, by what it is about, of the present file.
	last map[string]Decided
}

// Start records the decisions of this process from now on, until the end that it returns.
func Start(o Options) (end func(), err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for decisions: %w", err)
	}
	r := &Recorder{options: o, key: []byte(rand.Text())}
	files, err := filesIn(o.Dir)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		_, _ = fmt.Sscanf(filepath.Base(files[len(files)-1]), pattern, &r.number) // of another name, the first comes
	}
	if err := r.next(); err != nil {
		return nil, err
	}
	if !recording.CompareAndSwap(nil, r) {
		return nil, errors.New("decisions are recorded in this process already")
	}
	return func() { recording.Store(nil); r.close(nil) }, nil
}

// add records a decision, if it is another one than the last. What cannot be written ends the record, and nothing else.
func (r *Recorder) add(d *Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil || !r.isNews(d) {
		return
	}
	if r.options.HideNames {
		d = r.hidden(d)
	}
	err := r.file.encode(d)
	if err == nil && r.file.size >= r.options.Size/parts {
		err = r.next()
	}
	if err != nil {
		r.end(err)
	}
}

// next begins another file, and removes the oldest ones. Each begins with the decisions that are in force.
func (r *Recorder) next() error {
	if r.file != nil {
		if err := r.file.Close(); err != nil {
			return err
		}
	}
	r.number++
	files, err := filesIn(r.options.Dir)
	if err != nil {
		return err
	}
	for _, old := range files[:max(0, len(files)-parts+1)] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("remove the oldest decisions: %w", err)
		}
	}
	f, err := os.OpenFile(filepath.Join(r.options.Dir, fmt.Sprintf(pattern, r.number)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("begin a file of decisions: %w", err)
	}
	r.last = map[string]Decided{}
	r.file = newStream(f)
	return nil
}

// close ends the record, because of an error if there is one.
func (r *Recorder) close(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(why)
}

func (r *Recorder) end(why error) {
	if r.file != nil {
		why = errors.Join(why, r.file.Close())
		r.file = nil
	}
	if why != nil {
		r.options.Log.Error(why, "decisions are not recorded any more; correct the cause and restart the manager", "folder", r.options.Dir)
	}
}

// stream is a file of decisions as it is written. Each decision is flushed, so that a process that is killed leaves all but the
// last one.
type stream struct {
	to      io.WriteCloser
	size    int64
	zip     *gzip.Writer
	encoder *gob.Encoder
}

func newStream(to io.WriteCloser) *stream {
	s := &stream{to: to}
	s.zip, _ = gzip.NewWriterLevel(s, gzip.BestSpeed) // the level exists
	s.encoder = gob.NewEncoder(s.zip)
	return s
}

func (s *stream) encode(d *Decision) error {
	if err := s.encoder.Encode(d); err != nil {
		return fmt.Errorf("write a decision: %w", err)
	}
	if err := s.zip.Flush(); err != nil {
		return fmt.Errorf("write a decision: %w", err)
	}
	return nil
}

// Write counts what is written.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.size += int64(n)
	return n, err //nolint:wrapcheck // encode wraps it
}

// Close ends the file.
func (s *stream) Close() error {
	if err := errors.Join(s.zip.Close(), s.to.Close()); err != nil {
		return fmt.Errorf("end a file of decisions: %w", err)
	}
	return nil
}

// filesIn are the files of a folder, the oldest first.
func filesIn(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	if err != nil {
		return nil, fmt.Errorf("look for decisions in %s: %w", dir, err)
	}
	slices.Sort(files)
	return files, nil
}
