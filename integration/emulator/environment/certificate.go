package environment

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// certificate is the TLS certificate of an emulator that enforces policies. Policies that refuse
// calls without TLS would otherwise refuse all.
type certificate struct {
	authority, cert, key string // PEM files
	pool                 *x509.CertPool
}

// newCertificate creates an authority that nothing else trusts, whose key is dropped at once, and a
// certificate for this machine, in dir.
func newCertificate(dir string) (*certificate, error) {
	c := &certificate{
		authority: filepath.Join(dir, "authority.pem"), cert: filepath.Join(dir, "emulator.pem"),
		key:  filepath.Join(dir, "emulator.key"),
		pool: x509.NewCertPool(),
	}
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an emulator's authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "an emulator"}, NotBefore: root.NotBefore,
		NotAfter:              root.NotAfter,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"localhost", "*.localhost"},
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &leafKey.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return nil, err
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})
	c.pool.AppendCertsFromPEM(authority)
	for name, body := range map[string][]byte{
		c.authority: authority,
		c.cert:      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}),
		c.key:       pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	} {
		if err := os.WriteFile(name, body, 0o600); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// emulator returns the environment that makes MiniStack enforce policies and its functions reach
// it.
func (c *certificate) emulator(url string) []string {
	return append(c.client(), "AUTH=true", "USE_SSL=1", "MINISTACK_SSL_CERT="+c.cert, "MINISTACK_SSL_KEY="+c.key,
		"AWS_ENDPOINT_URL="+url)
}

// client returns the environment that makes a program trust the certificate.
func (c *certificate) client() []string {
	return []string{"AWS_CA_BUNDLE=" + c.authority, "NODE_EXTRA_CA_CERTS=" + c.authority}
}

func (c *certificate) trust(t *http.Transport) {
	t.TLSClientConfig = &tls.Config{RootCAs: c.pool, MinVersion: tls.VersionTLS12}
}

// Client returns a client that trusts e; limit bounds a request, 0 does not.
func (e *Emulator) Client(limit time.Duration) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if e.cert != nil {
		e.cert.trust(transport)
	}
	return &http.Client{Timeout: limit, Transport: transport}
}

// sdkClient is Client in a form that an SDK configuration can change.
func (c *certificate) sdkClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(c.trust)
}
