import type { SlackMessage } from '../../fakes/slack-workspace.ts';
import type { Shown } from '../contract/scene.ts';

interface Button {
  readonly type: 'button';
  readonly value: string;
  readonly text: { readonly text: string };
}

/** The buttons under a message, as Slack sends them back when one is pressed. */
export function buttonsOf({ blocks }: SlackMessage): readonly Button[] {
  return blocks.flatMap(({ type, elements }) => (type === 'actions' ? (elements as readonly Button[]) : []));
}

/** Slack shows the blocks where there are any, and reads its own notation where there are none. */
export function shownOf(message: SlackMessage): Shown {
  const { channel, ts, thread, text, blocks, files, stream } = message;
  const words = blocks.flatMap(({ type, text: own }) => {
    if (type === 'markdown') return [String(own)];
    return type === 'section' ? [String((own as { text: string }).text)] : [];
  });
  const plain = text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
  return {
    messageId: ts,
    chat: channel,
    text: stream !== null && words.length === 0 ? text : words.length === 0 ? plain : words.join('\n'),
    thread,
    repliesTo: null,
    files: files.map(({ name, bytes }) => ({ name, bytes })),
    buttons: buttonsOf(message).map(({ text: label }) => label.text),
    ...(stream === null ? {} : { stream }),
  };
}
