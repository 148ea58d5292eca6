// Package programtest builds the programs of this module and runs them as processes that belong to one test.
package programtest
