package functionfile

import "net/http"

// postOnce sends each request once. http.Transport takes a POST with the header
// Idempotency-Key for one that it may send again by itself, when a connection that it
// used before ends without an answer; but whether a call is run again is for the
// function's policy to say.
type postOnce struct{ http.RoundTripper }

// RoundTrip sends the request in a form that cannot be sent again. The client's own
// request keeps that ability, for redirects.
func (p postOnce) RoundTrip(req *http.Request) (*http.Response, error) {
	once := *req
	once.GetBody = nil
	return p.RoundTripper.RoundTrip(&once)
}
