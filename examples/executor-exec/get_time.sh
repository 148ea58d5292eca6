#!/bin/sh
# No arguments to read: what is written to standard output is the result.
date -u +%Y-%m-%dT%H:%M:%SZ
