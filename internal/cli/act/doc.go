// Package act is what people do to rollouts: pause, resume, retry, approve, refuse, roll back,
// pin and unpin.
//
//  1. [Prepare] reads, decides and says what would be written. It writes nothing, so that
//     what will be done can be shown before it is.
//  2. A [Write] writes one object, if it is still as [Prepare] read it.
//  3. Who does it, when and why is recorded in the object and in an Event.
//
// The commands and the dashboard act by the same functions, with the client, and so with the
// permissions, of the person. Other commands write by [Apply], and show by [Show] what they wrote.
package act
