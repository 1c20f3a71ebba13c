/** Who we are in a workspace. */
export interface Self {
  readonly userId: string;
  readonly botId: string;
  readonly teamId: string;
  /** The workspace that a token was made for, and what we are called there: for people. */
  readonly team: string;
  readonly name: string;
}

/** Longer ones are no tokens: nothing of Slack's is that long but an address. */
const TOKEN = /<([^<>\n]{1,3000})>|&(lt|gt|amp);/g;
const SIGNS: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&' };

/** What was written, from Slack's own notation: names, links and signs as people read them. */
export function decodeText(text: string, self: Pick<Self, 'userId' | 'name'>): string {
  return text.replace(TOKEN, (whole, token: string | undefined, sign: string | undefined) => {
    if (token === undefined) return SIGNS[sign ?? ''] ?? whole;
    return decodeToken(token, self) ?? whole;
  });
}

function decodeToken(token: string, { userId, name }: Pick<Self, 'userId' | 'name'>): string | null {
  const bar = token.indexOf('|');
  const target = unescapeSigns(bar < 0 ? token : token.slice(0, bar));
  const label = bar < 0 ? '' : unescapeSigns(token.slice(bar + 1));
  if (target === `@${userId}`) return `@${name}`;
  if (target.startsWith('@')) return label === '' ? `<${target}>` : `@${label}`;
  if (target.startsWith('#')) return label === '' ? `<${target}>` : `#${label}`;
  if (target.startsWith('!')) return label === '' ? `@${target.slice(1)}` : label;
  if (!/^(?:https?|mailto|tel|ftp):/i.test(target)) return null;
  if (/^(?:mailto|tel):/i.test(target)) return label === '' ? target : label;
  // Slack makes links of what looks like one: then the label says the same.
  return label === '' || target.endsWith(label) || target.endsWith(`${label}/`) ? target : `[${label}](${target})`;
}

function unescapeSigns(text: string): string {
  return text.replace(/&(lt|gt|amp);/g, (whole, sign: string) => SIGNS[sign] ?? whole);
}

/** Whether a text, in Slack's own notation, names a user. */
export function mentions(text: string, userId: string): boolean {
  return text.includes(`<@${userId}>`) || text.includes(`<@${userId}|`);
}

/** Without our name at its beginning, if anything follows: a command behind it is still a command. */
export function withoutOwnName(text: string, userId: string): string {
  const [name] = /^\s*<@([\w-]{1,64})(?:\|[^<>\n]{0,128})?>[\s,:]*/.exec(text) ?? [];
  if (name === undefined || !mentions(name, userId)) return text;
  const rest = text.slice(name.length);
  return rest === '' ? text : rest;
}

/** A text as Slack takes it where it reads its own notation. */
export function escapeSigns(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
