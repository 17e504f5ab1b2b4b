// Package transport sends messages about rollouts: to a webhook, to a chat, to an Alertmanager.
//
// # Invariants
//
//   - It decides nothing. A message is one request, by [outbound], with its limits.
//   - The address is in the Secret with the credentials, which are sent nowhere else. Neither
//     is in anything that is returned.
//   - What is quoted of a status is text: it cannot address people in a chat or format the
//     message.
//   - CloudEvents are written here: they are one JSON object with nine fields, and a library
//     would bring a client of its own.
package transport
