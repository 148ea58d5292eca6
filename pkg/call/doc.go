// Package call holds the nouns of callfan: the calls that an agent asks for,
// their keys, attempts, outcomes and results, and the functions that serve them.
//
// The words are those of the OpenAI Agents API. A session's required actions
// list calls; a call is answered by one tool result. The package imports nothing
// but the standard library, and every other package may import it.
package call
