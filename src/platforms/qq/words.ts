import { fieldsOf, nameOf } from '../fields.ts';

export interface Words {
  readonly text: string;
  /** They name us. */
  readonly isToUs: boolean;
}

/** What QQ writes into a text for what is no text: names of people in three ways, and pictures of faces. */
const TAG =
  /<(?:@!?([\w-]{1,128})|qqbot-at-user id="([\w-]{1,128})" ?\/|faceType=\d{1,4},faceId="[^"<>]{0,64}",ext="([\w+/=-]{0,4096})")>/g;

/**
 * The words of a message as people read them. `names` tells who is behind an id, null for us; without it, `self` does.
 * Our own name is left out: it says to whom, not what.
 */
export function readWords(content: string, names: ReadonlyMap<string, string | null>, self: string): Words {
  let isToUs = false;
  const text = content.replaceAll(TAG, (tag, old?: string, id = old, face?: string) => {
    if (face !== undefined) return faceOf(face);
    if (id === undefined) return tag;
    const name = id === self ? null : (names.get(id) ?? (names.has(id) ? null : id));
    if (name !== null) return `@${name}`;
    isToUs = true;
    return '';
  });
  return { text: withoutEscapes(text).trim(), isToUs };
}

/** QQ escapes these so that they are no tags. */
function withoutEscapes(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

/** The name of a face stands in what looks like noise. */
function faceOf(ext: string): string {
  try {
    const fields = fieldsOf(JSON.parse(Buffer.from(ext, 'base64').toString('utf8')));
    return `[${(nameOf(fields?.text) ?? 'face').replaceAll(/[[\]]/g, '')}]`;
  } catch {
    return '[face]';
  }
}
