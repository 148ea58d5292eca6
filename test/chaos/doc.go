// Package chaos proves callfan's promise under faults: no call lost, no result doubled, no effect doubled.
//
// [Run] starts a JetStream cluster of three, Redis with a replica and Sentinel, three dispatchers and four executors as
// processes, and the simulator of the API in this process. It lets scripted sessions require calls while a seeded
// nemesis kills, freezes and stops processes and makes the API fail. Then it heals everything, waits, and checks what
// the simulator accepted against what the executors really did. docs/chaos.md says how to read the report.
package chaos
