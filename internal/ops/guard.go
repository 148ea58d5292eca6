package ops

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// guard lets only operators through. With a token, whoever knows it; without, any
// process of this machine, but no web page in a browser of this machine: neither by
// a request from another origin nor by a name that resolves to loopback.
func (s *Server) guard(next http.Handler) http.Handler {
	token := sha256.Sum256([]byte(s.cfg.AdminToken))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.AdminToken != "" {
			given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			sum := sha256.Sum256([]byte(given))
			if !ok || subtle.ConstantTimeCompare(sum[:], token[:]) != 1 {
				w.Header().Set("WWW-Authenticate", "Bearer")
				refuse(w, http.StatusUnauthorized, "unauthorized", "the admin API needs the admin token, as Authorization: Bearer TOKEN")
				return
			}
			next.ServeHTTP(w, r)
			return
		}
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !isLoopback(strings.Trim(host, "[]")) || http.NewCrossOriginProtection().Check(r) != nil {
			refuse(w, http.StatusForbidden, "forbidden", "without an admin token the admin API answers only to programs of this machine, at its loopback address")
			return
		}
		next.ServeHTTP(w, r)
	})
}
