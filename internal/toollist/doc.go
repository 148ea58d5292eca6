// Package toollist makes lists of tools for agents of the functions that executors
// have registered, and compares them with the lists that agents and sessions have.
package toollist
