package call

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Nonces makes and checks the nonces of attempts. A nonce is the attempt's
// number and a MAC over key, function token and attempt under a secret that only the
// dispatchers hold, so an executor can answer only calls that it was given, and
// a dispatcher can check an outcome even after its store was lost (ADR 0004).
type Nonces struct{ secret []byte }

// NewNonces uses the installation's secret, which all dispatchers share.
func NewNonces(secret []byte) Nonces { return Nonces{secret: secret} }

// For is the nonce of one attempt of the call for the function with this token.
func (n Nonces) For(k Key, token string, attempt int) string { return n.sign(k, token, itoa(attempt)) }

// Check reports the attempt that a nonce belongs to, and false when it was not
// made by For for this key and token.
func (n Nonces) Check(k Key, token, nonce string) (attempt int, ok bool) {
	return n.check(k, token, nonce, "")
}

// decision begins the nonces of operators' decisions.
const decision = "d"

// Decision is the nonce of an operator's decision about an attempt of the call. No
// executor is ever given it, so none can decide.
func (n Nonces) Decision(k Key, token string, attempt int) string {
	return n.sign(k, token, decision+itoa(attempt))
}

// CheckDecision reports the attempt that a decision is about, and false when the nonce
// was not made by Decision for this key and token.
func (n Nonces) CheckDecision(k Key, token, nonce string) (attempt int, ok bool) {
	return n.check(k, token, nonce, decision)
}

func (n Nonces) sign(k Key, token, label string) string {
	mac := hmac.New(sha256.New, n.secret)
	text := appendIDs(make([]byte, 0, 160), k.Session, k.Turn, k.Call, token)
	text = append(text, '#')
	_, _ = mac.Write(append(text, label...))
	return label + "-" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))[:22]
}

func (n Nonces) check(k Key, token, nonce, prefix string) (attempt int, ok bool) {
	label, _, found := strings.Cut(nonce, "-")
	number, prefixed := strings.CutPrefix(label, prefix)
	if !found || !prefixed {
		return 0, false
	}
	attempt, err := strconv.Atoi(number)
	if err != nil || attempt < 1 {
		return 0, false
	}
	if !hmac.Equal([]byte(n.sign(k, token, prefix+itoa(attempt))), []byte(nonce)) {
		return 0, false
	}
	return attempt, true
}
