// Package dashboard serves pages on what the commands status, explain, forecast and history
// say: what moves, why it waits, what comes next, and what happened.
//
//  1. A request is let in by [guard]: by a name of the loopback interface, so that no site can
//     reach the pages by a name of its own, and with the token that the command printed.
//  2. All viewers share one look at the cluster, [live]. It is taken when a watch or the time says
//     that something may have changed and a page is open, and followed by a rest of twice as long
//     as it took; a viewer costs no request to the API server.
//  3. A page is made from values that the commands print as JSON. Who asks for
//     application/json gets the value itself.
//  4. Before the first look has ended, a page that lists rollouts shows what is known so far and
//     says what is not. A program waits, and so does whatever needs all of it.
//  5. A page is whole without its script, which only reads the page again when [live] has
//     changed, and copies commands.
//  6. What is done is done by [Steering], as the person, after a page has said what it will
//     do, and only to what is still as she saw it. A form is accepted from a page of this
//     server alone.
//
// Package hosted serves the same pages in a cluster, to people who log in.
package dashboard
