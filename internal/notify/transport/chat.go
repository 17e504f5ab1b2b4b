package transport

import (
	"strings"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
)

// discordLength bounds the content of a message to Discord, in bytes.
const discordLength = 2000

// chat is a message in the form of an incoming webhook.
func chat(format v1alpha1.ChatFormat, m *Message) any {
	switch format {
	case v1alpha1.ChatTeams:
		return teams(m)
	case v1alpha1.ChatDiscord:
		return map[string]any{
			"content":          message.Cut(lines(m, "**", discordText), discordLength),
			"allowed_mentions": map[string]any{"parse": []string{}},
		}
	default:
		return map[string]any{"text": lines(m, "*", slackText)}
	}
}

// lines are the headline between two marks, the sentence, the next command and the trace.
func lines(m *Message, mark string, text func(string) string) string {
	all := []string{mark + text(m.Headline()) + mark}
	if m.Sentence != "" {
		all = append(all, text(m.Sentence))
	}
	all = append(all, "Next: `"+m.Next()+"`")
	if m.TraceID != "" {
		all = append(all, "Trace: `"+m.TraceID+"`")
	}
	return strings.Join(all, "\n")
}

// slackText is a text in which nothing is a mention or a link.
func slackText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ").Replace(text)
}

// discordText is a text in which nothing is a mention, a link or a format.
func discordText(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "~", `\~`, "|", `\|`, ">", `\>`, "<", `\<`, "#", `\#`, "[", `\[`, "\n", " ").Replace(text)
}

// teams is an adaptive card. Its runs of text have no marks.
func teams(m *Message) any {
	body := []any{block(run(m.Headline(), "weight", "Bolder"))}
	if m.Sentence != "" {
		body = append(body, block(run(m.Sentence)))
	}
	body = append(body, block(run("Next: "), run(m.Next(), "fontType", "Monospace")))
	if m.TraceID != "" {
		body = append(body, block(run("Trace: "), run(m.TraceID, "fontType", "Monospace")))
	}
	return map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": "application/vnd.microsoft.card.adaptive",
		"content": map[string]any{
			"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body,
		},
	}}}
}

func block(runs ...any) any { return map[string]any{"type": "RichTextBlock", "inlines": runs} }

func run(text string, style ...string) any {
	r := map[string]any{"type": "TextRun", "text": text}
	for i := 0; i+1 < len(style); i += 2 {
		r[style[i]] = style[i+1]
	}
	return r
}
