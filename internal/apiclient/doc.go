// Package apiclient is what the adapters to OpenAI's APIs share: how the official
// client is set up, how one request is made, and how its refusal is read.
//
// The client makes each request once: whoever calls it owns the waiting and the
// repeating, so that one layer decides how often the API is asked.
package apiclient
