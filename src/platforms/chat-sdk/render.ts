import type { Button, Outgoing } from '../platform.ts';
import type { Postable } from './adapter.ts';

/** A message as adapters take it; `raw` for those whose platform reads Markdown itself. */
export function postableOf({ text, buttons = [], files = [] }: Outgoing, raw: boolean): Postable {
  if (buttons.length > 0) return { card: cardOf(text, buttons), fallbackText: text };
  const sent = files.map(({ name, mime, bytes }) => {
    return { data: Buffer.from(bytes), filename: name, ...(mime === null ? {} : { mimeType: mime }) };
  });
  return { ...(raw ? { raw: text } : { markdown: text }), ...(sent.length === 0 ? {} : { files: sent }) };
}

function cardOf(text: string, rows: NonNullable<Outgoing['buttons']>): object {
  const actions = rows.map((row) => ({ type: 'actions', children: row.map(buttonOf) }));
  return { type: 'card', children: [{ type: 'text', content: text }, ...actions] };
}

/** Its data is its name, and it has no value beside: some platforms have room for one of them only. */
function buttonOf({ label, data }: Button): object {
  return { type: 'button', id: data, label };
}
