package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/kvstore"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// redisConfig is nil when the settings name no Redis.
func redisConfig(c config.Redis) (*redisstore.Config, error) {
	url := c.RedisURL.Reveal()
	if url == "" {
		return nil, nil // no Redis is a choice, not an error
	}
	settings, err := tlsConfig(c.RedisCA, c.RedisCert, c.RedisKey)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	cfg := &redisstore.Config{
		Username: c.RedisUser, Password: c.RedisPassword.Reveal(), TLS: settings,
		Prefix: c.RedisPrefix, Retention: c.Retention,
	}
	switch c.RedisMode {
	case "cluster":
		o, err := redis.ParseClusterURL(url)
		if err != nil {
			return nil, redisstore.ErrInvalidURL
		}
		cfg.Universal = &redis.UniversalOptions{
			Addrs: o.Addrs, IsClusterMode: true, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		}
	case "sentinel":
		o, err := redis.ParseFailoverURL(url)
		if err != nil {
			return nil, redisstore.ErrInvalidURL
		}
		if o.MasterName == "" {
			return nil, errors.New("redis: the address of a Sentinel needs the name of its master: redis://host:26379?master_name=NAME")
		}
		cfg.Universal = &redis.UniversalOptions{
			Addrs: o.SentinelAddrs, MasterName: o.MasterName, DB: o.DB,
			SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
			Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		}
	default:
		if _, err := redis.ParseURL(url); err != nil {
			return nil, redisstore.ErrInvalidURL
		}
		cfg.URL = url
	}
	return cfg, nil
}

// tlsConfig is nil when no file is named.
func tlsConfig(ca, cert, key string) (*tls.Config, error) {
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("the authorities cannot be read: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the file %s holds no certificate in PEM form", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("the client certificate: %w", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

func natsStorage(storage string) jetstream.StorageType {
	if storage == string(queue.StorageMemory) {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// openStore opens the store once.
func (o Options) openStore(ctx context.Context, conn *queue.Conn) (results.Store, error) {
	if o.Redis != nil {
		store, err := redisstore.New(ctx, *o.Redis)
		if err != nil {
			return nil, err
		}
		return store, nil
	}
	store, err := kvstore.New(ctx, conn.JetStream(), o.KV)
	if err != nil {
		return nil, err
	}
	return store, nil
}

// unfit says that trying again is of no use: somebody has to change something.
func unfit(err error) bool {
	_, evicting := errors.AsType[*redisstore.EvictionError](err)
	return evicting || errors.Is(err, redisstore.ErrInvalidURL) || errors.Is(err, kvstore.ErrBucketUnfit)
}
