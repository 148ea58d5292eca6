// Package agents is the adapter to the OpenAI Agents API (beta agents=v1), through the
// official client, openai-go. Every error is a *call.Refusal, read for what has to be
// done.
//
// Arguments and outputs belong to the user. They go through this package as the
// bytes that they are: the official client's types decode numbers into floats and
// would turn 9007199254740993 into 9007199254740992.
package agents
