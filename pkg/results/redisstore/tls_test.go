package redisstore_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile, roots := certificate(t, dir)
	socket := filepath.Join(dir, "redis.sock") // only to see that both doors lead to one server
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	testservers.Redis(t, testservers.RedisArgs("--tls-port", port, "--tls-cert-file", certFile, "--tls-key-file", keyFile,
		"--tls-auth-clients", "no", "--tls-ca-cert-file", certFile, "--unixsocket", socket))

	_, err = redisstore.New(context.Background(), redisstore.Config{URL: "rediss://" + addr})
	require.ErrorContains(t, err, "certificate")

	secure := open(t, redisstore.Config{URL: "rediss://" + addr, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	first := claim(t, secure, "call_1")
	require.NoError(t, secure.Close())
	local := open(t, redisstore.Config{URL: "unix://" + socket})
	require.Equal(t, first[0].ClaimedAt, claim(t, local, "call_1")[0].ClaimedAt)
	require.NoError(t, local.Close())
}

// certificate writes a self-signed one for 127.0.0.1.
func certificate(t *testing.T, dir string) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots = x509.NewCertPool()
	roots.AddCert(cert)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", keyDER), roots
}
