package program

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"time"
)

// File is one of an archive.
type File struct {
	Name    string
	Content []byte
	// Program is true of what is executed.
	Program bool
}

func (f File) mode() int64 {
	if f.Program {
		return 0o755
	}
	return 0o644
}

// Tar is a tar of files as they are given: owned by root, and of one date. The folders that
// they are in come before them.
func Tar(files []File, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w, made := tar.NewWriter(&b), map[string]bool{".": true}
	for _, f := range files {
		if dir := path.Dir(f.Name); !made[dir] {
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: date, Format: tar.FormatPAX}); err != nil {
				return nil, fmt.Errorf("pack folder %s: %w", dir, err)
			}
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: int64(len(f.Content)), Mode: f.mode(), ModTime: date, Format: tar.FormatPAX}); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return b.Bytes(), nil
}

// TarGz is a compressed [Tar], without a name and a date of its own.
func TarGz(files []File, date time.Time) ([]byte, error) {
	raw, err := Tar(files, date)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if _, err := w.Write(raw); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return b.Bytes(), nil
}

// Zip is what Windows opens.
func Zip(files []File, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: date.UTC()}
		to, err := w.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
		if _, err := io.Copy(to, bytes.NewReader(f.Content)); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return b.Bytes(), nil
}
