package node

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Image is the one image of a node, also by its name for sandboxes. It is never pulled.
const (
	Image   = "lab.spillway.dev/program:1"
	sandbox = "lab.spillway.dev/sandbox:1"
)

// source is the package of the program in the image.
const source = "github.com/spillway-dev/spillway/internal/lab/node/program"

// WriteImage compiles the program, and writes an image with it to a file, as "docker save" does.
// Other clusters load it by "kind load image-archive FILE" or "k3d image import FILE".
func WriteImage(ctx context.Context, file string) (err error) {
	folder, err := os.MkdirTemp("", "spillway-image-")
	if err != nil {
		return fmt.Errorf("folder of the image: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	program := filepath.Join(folder, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the program of the image: %w: %s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the program of the image: %w", err)
	}
	to, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("file of the image: %w", err)
	}
	return errors.Join(archive(to, content), to.Close())
}

// member is a file of an archive.
type member struct {
	name    string
	mode    int64
	content []byte
}

// archive writes an image of one layer with one program.
func archive(to io.Writer, program []byte) error {
	var layer bytes.Buffer
	if err := write(&layer, member{"program", 0o755, program}); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/program"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer.Bytes())}},
	})
	if err != nil {
		return fmt.Errorf("describe the image: %w", err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": sum(config) + ".json", "RepoTags": []string{Image, sandbox}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return fmt.Errorf("describe the image: %w", err)
	}
	return write(to, member{sum(config) + ".json", 0o644, config}, member{"layer.tar", 0o644, layer.Bytes()}, member{"manifest.json", 0o644, manifest})
}

func write(to io.Writer, members ...member) error {
	w := tar.NewWriter(to)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Mode: m.mode, Size: int64(len(m.content)), Typeflag: tar.TypeReg}); err != nil {
			return fmt.Errorf("archive %s: %w", m.name, err)
		}
		if _, err := w.Write(m.content); err != nil {
			return fmt.Errorf("archive %s: %w", m.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
