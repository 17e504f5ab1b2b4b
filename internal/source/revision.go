package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// ReadRevision reads what [ReadTree] does as it was in a revision of the repository of git in which the paths
// are, and names files as git does: main:shop/web.yaml. A path that does not exist now, or that the revision does not
// have, has no manifests. It is git itself that reads the repository.
func ReadRevision(ctx context.Context, revision string, o Options, paths ...string) (documents []Document, err error) {
	there, err := os.MkdirTemp("", "spillway-revision-")
	if err != nil {
		return nil, fmt.Errorf("make room for %s: %w", revision, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(there)) }()
	var then, named []string
	for i, path := range paths {
		to, dir, name := filepath.Join(there, strconv.Itoa(i)), filepath.Dir(path), filepath.Base(path)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if info.IsDir() {
			dir, name = filepath.Clean(path), "."
		}
		named = append(named, to+string(filepath.Separator), revision+":"+strings.TrimPrefix(dir+"/", "./"), to, revision+":"+dir)
		if is, err := checkOut(ctx, to, revision, dir, name); err != nil {
			return nil, fmt.Errorf("%s as of %s: %w", path, revision, err)
		} else if is {
			then = append(then, filepath.Join(to, name))
		}
	}
	if len(then) == 0 {
		return nil, nil
	}
	documents, err = ReadTree(nil, o, then...)
	rename := strings.NewReplacer(named...).Replace
	for i := range documents {
		documents[i].File = rename(documents[i].File)
	}
	for _, e := range Errors(err) {
		e.File, e.Problem, e.Action = rename(e.File), rename(e.Problem), rename(e.Action)
	}
	return documents, err
}

// checkOut writes what a name in a directory was in a revision, and reports whether the revision has it.
func checkOut(ctx context.Context, to, revision, dir, name string) (bool, error) {
	listed, err := git(ctx, dir, nil, "ls-tree", "-r", "-z", "--end-of-options", revision, name)
	if err != nil {
		return false, err
	}
	var names []string
	var hashes bytes.Buffer
	for entry := range strings.SplitSeq(strings.TrimSuffix(listed, "\x00"), "\x00") {
		is, name, _ := strings.Cut(entry, "\t")
		if f := strings.Fields(is); len(f) == 3 && f[0] != linkMode && f[1] == "blob" {
			names = append(names, name)
			fmt.Fprintln(&hashes, f[2])
		}
	}
	if len(names) == 0 {
		return false, nil
	}
	texts, err := git(ctx, dir, &hashes, "cat-file", "--batch")
	if err != nil {
		return false, err
	}
	return true, writeBatch(texts, to, names)
}

// linkMode is how git lists a symbolic link.
const linkMode = "120000"

// writeBatch writes the files that git cat-file --batch has printed: of each a line that ends in its size, and its text.
func writeBatch(texts, to string, names []string) error {
	r := bufio.NewReader(strings.NewReader(texts))
	for _, name := range names {
		var hash, kind string
		var size int64
		if _, err := fmt.Fscanf(r, "%s %s %d\n", &hash, &kind, &size); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		text := make([]byte, size+1)
		if _, err := io.ReadFull(r, text); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		file := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.WriteFile(file, text[:size], 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// git runs git in a directory, and returns what it prints.
func git(ctx context.Context, dir string, in io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // a revision that begins with a dash is none: --end-of-options
	var out, said bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, in, &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}
