// Package responses is the adapter to the OpenAI Responses API, through the official
// client, openai-go. It implements runs.Model; every error that is not the caller's own is
// a *call.Refusal, read for what has to be done.
//
// Requests, items and outputs go through this package as the bytes that they are. What
// the API answers is read with tolerance, since other servers speak the same API: one may
// ignore stream or background, number no events, or leave ids out.
package responses
