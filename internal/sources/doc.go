// Package sources tells when a session should be looked at: by its event stream,
// by polling the list of sessions, and by a file of session ids.
//
// A source never says what is pending. Streams replay nothing and lists lag, so
// every trigger means only "retrieve this session", and missing one costs time,
// never a call.
package sources
