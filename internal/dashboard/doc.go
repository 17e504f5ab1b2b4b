// Package dashboard serves pages on what the commands status, explain, forecast and history
// say: what moves, why it waits, what comes next, and what happened.
//
//  1. A request is let in by [guard]: by a name of the loopback interface, so that no site can
//     reach the pages by a name of its own, and with the token that the command printed.
//  2. All viewers share one look at the cluster, [live]. It is taken when a watch or the time says
//     that something may have changed and a page is open, and followed by a rest of twice as long
//     as it took; a viewer costs no request to the API server.
//  3. A page is made from values that the commands print as JSON. Programs that ask for
//     application/json get the value itself.
//  4. Pages are files, templates/*.html, which html/template fills: it escapes text for the place
//     where it stands. Go prepares what they show and makes no HTML, except two parts of which a
//     page has thousands. Windows that show the same share a page, [rendered].
//  5. Before the first look has ended, a page that lists rollouts shows what is known so far and
//     says what is not. A program waits, and so does what needs all of it.
//  6. A page is whole without its script, which only reads the page again when [live] has
//     changed, and copies commands. There is no script of others and no build step: what a browser
//     computes could differ from what the commands say.
//  7. What waits is grouped by what it waits for, from the parts of units and their waitsFor: that
//     needs no further read. The page of one object reads the whole chain.
//  8. [Steering] acts as the person, after a page has said what will be done, and only on what is
//     still as they saw it. A form is accepted from a page of this server alone.
//
// A drawing says where the shapes are by which the pages show rollouts: zones as columns of Pods,
// the clusters of a fleet, a plan as a tree, the queue of a change of config, and the steps of a
// forecast on a time line. Each has a text for people who do not see it.
//
// Package hosted serves the same pages in a cluster, to people who log in.
package dashboard
