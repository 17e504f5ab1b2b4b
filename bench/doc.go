// Package bench measures what Spillway costs, and checks in the same run that it
// did what it should: API calls, which are exact; the ratio to the physical
// floor, which is a bare loop of the same writes in the same process; memory.
//
// go test ./bench runs small worlds as a test of the exact figures; make bench
// runs the full ones and prints a table.
package bench
