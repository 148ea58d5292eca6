package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// authority signs certificates, which are files in its directory.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes an authority whose certificate is the file ca.pem.
func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &authority{dir: dir}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	return a, a.sign("ca", template)
}

// file is the path of a file of the authority.
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue makes the files name.pem and name-key.pem, for both sides of connections on this computer.
func (a *authority) issue(name string) error {
	return a.sign(name, &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

func (a *authority) sign(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return err
	}
	template.SerialNumber, template.Subject = serial, pkix.Name{CommonName: "conformance " + name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if a.cert == nil {
		a.cert, a.key = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	if template.IsCA {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return err
		}
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(a.file(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(a.file(name+"-key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600),
	)
}

// tls asks clients for certificates of the authority, too.
func (a *authority) tls(name string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+"-key.pem"))
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// operator lets users in by JWT.
type operator struct {
	key              nkeys.KeyPair
	system, account  string
	accounts         server.MemAccResolver
	accountKey       nkeys.KeyPair
	trusted          string
	unlimitedStorage jwt.JetStreamLimits
}

func newOperator() (*operator, error) {
	key, err := nkeys.CreateOperator()
	if err != nil {
		return nil, err
	}
	o := &operator{key: key, unlimitedStorage: jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit, MaxAckPending: jwt.NoLimit,
	}}
	if o.trusted, err = key.PublicKey(); err != nil {
		return nil, err
	}
	if o.system, _, err = o.open(jwt.JetStreamLimits{}); err != nil {
		return nil, err
	}
	o.account, o.accountKey, err = o.open(o.unlimitedStorage)
	return o, err
}

// open makes an account.
func (o *operator) open(limits jwt.JetStreamLimits) (string, nkeys.KeyPair, error) {
	key, err := nkeys.CreateAccount()
	if err != nil {
		return "", nil, err
	}
	id, err := key.PublicKey()
	if err != nil {
		return "", nil, err
	}
	claims := jwt.NewAccountClaims(id)
	claims.Limits.JetStreamLimits = limits
	token, err := claims.Encode(o.key)
	if err != nil {
		return "", nil, err
	}
	return id, key, o.accounts.Store(id, token)
}

// admit makes a user and writes its credentials to a file.
func (o *operator) admit(file string) error {
	key, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	id, err := key.PublicKey()
	if err != nil {
		return err
	}
	claims := jwt.NewUserClaims(id)
	claims.IssuerAccount = o.account
	token, err := claims.Encode(o.accountKey)
	if err != nil {
		return err
	}
	seed, err := key.Seed()
	if err != nil {
		return err
	}
	text, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// newSeed makes an nkey of a user, writes its seed to a file and gives the public key.
func newSeed(file string) (string, error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	seed, err := key.Seed()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file, append(seed, '\n'), 0o600); err != nil {
		return "", err
	}
	return key.PublicKey()
}
