// Package webhooks receives OpenAI's webhooks: that a session requires an action, and
// that a response made in the background has ended.
//
// A webhook says only what to look at, never what is pending, and it may come late,
// twice or not at all. So all that it leads to can be repeated, and losing one costs
// time, never a call. Its signature is verified by the official client.
package webhooks
