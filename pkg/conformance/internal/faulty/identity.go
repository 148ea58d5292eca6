package main

import (
	"crypto/tls"
	"os"

	"github.com/nats-io/nats.go"
)

// identity says who this is, and whom it trusts.
func identity() ([]nats.Option, error) {
	opts := []nats.Option{nats.UserInfo(os.Getenv("NATS_USER"), os.Getenv("NATS_PASSWORD"))}
	if creds := os.Getenv("NATS_CREDS"); creds != "" && !fault("no-creds") {
		opts = append(opts, nats.UserCredentials(creds))
	}
	if seed := os.Getenv("NATS_NKEY"); seed != "" && !fault("no-nkey") {
		nkey, err := nats.NkeyOptionFromSeed(seed)
		if err != nil {
			return nil, err
		}
		opts = append(opts, nkey)
	}
	if ca := os.Getenv("NATS_CA"); ca != "" {
		opts = append(opts, nats.RootCAs(ca))
	}
	if cert := os.Getenv("NATS_CERT"); cert != "" {
		opts = append(opts, nats.ClientCert(cert, os.Getenv("NATS_KEY")))
	}
	if fault("trusts-every-server") {
		opts = append(opts, func(o *nats.Options) error {
			if o.TLSConfig == nil {
				o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
			}
			o.TLSConfig.InsecureSkipVerify = true
			return nil
		})
	}
	return opts, nil
}
