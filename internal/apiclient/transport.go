package apiclient

import (
	"net"
	"net/http"
	"time"
)

// newTransport is a transport for thousands of streams that are mostly silent
// beside many short requests to one host. Connections that died silently are
// found by pings (HTTP/2) and keep-alive probes (HTTP/1).
func newTransport() *http.Transport {
	dialer := &net.Dialer{
		Timeout: 10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3,
		},
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          0, // no limit beside the one per host: there is one host
		MaxIdleConnsPerHost:   512,
		MaxConnsPerHost:       0, // every HTTP/1 stream holds one
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}
