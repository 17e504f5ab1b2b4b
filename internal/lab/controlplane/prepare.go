package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"embed"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

//go:embed stages/*.yaml
var stages embed.FS

// prepare lays out the folder: credentials, kubeconfig, stages.
func (cp *ControlPlane) prepare(context.Context) error {
	if err := cp.makeFolder(""); err != nil {
		return err
	}
	var err error
	if cp.etcdPort, cp.peerPort, cp.apiPort, err = threePorts(); err != nil {
		return err
	}
	key, err := signingKey()
	if err != nil {
		return err
	}
	return errors.Join(cp.writeCredentials(key), cp.writeStages())
}

// makeFolder makes the folder, in another or where temporary ones are.
func (cp *ControlPlane) makeFolder(in string) error {
	dir, err := os.MkdirTemp(in, "spillway-control-plane-")
	if err != nil {
		return fmt.Errorf("folder of the control plane: %w", err)
	}
	cp.Dir = dir
	return nil
}

func (cp *ControlPlane) writeCredentials(key []byte) error {
	return errors.Join(
		cp.write("token.csv", []byte(cp.token+",admin,admin,system:masters\n"+cp.kwokToken()+","+kwokUser+","+kwokUser+",system:masters\n")),
		cp.write("service-account.key", key),
	)
}

func (cp *ControlPlane) writeStages() error {
	var all []string
	for _, name := range []string{"node.yaml", "pod.yaml"} {
		raw, err := stages.ReadFile("stages/" + name)
		if err != nil {
			return fmt.Errorf("stages: %w", err)
		}
		all = append(all, string(raw))
	}
	return cp.write("stages.yaml", []byte(strings.Join(all, "\n---\n")))
}

func (cp *ControlPlane) write(name string, content []byte) error {
	if err := os.WriteFile(cp.path(name), content, 0o600); err != nil {
		return fmt.Errorf("prepare the control plane: %w", err)
	}
	return nil
}

func (cp *ControlPlane) path(name string) string { return filepath.Join(cp.Dir, name) }

// writeKubeconfigs writes the one that users get, and that of kwok.
func (cp *ControlPlane) writeKubeconfigs() error {
	return errors.Join(cp.writeKubeconfig(cp.Kubeconfig(), "admin", cp.token), cp.writeKubeconfig(cp.kwokKubeconfig(), kwokUser, cp.kwokToken()))
}

func (cp *ControlPlane) writeKubeconfig(path, user, token string) error {
	k := clientcmdapi.NewConfig()
	k.Clusters["spillway"] = &clientcmdapi.Cluster{Server: cp.config.Host, CertificateAuthorityData: cp.config.CAData}
	k.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	k.Contexts["spillway"] = &clientcmdapi.Context{Cluster: "spillway", AuthInfo: user}
	k.CurrentContext = "spillway"
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

func random() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

func signingKey() ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("key for service accounts: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
}
