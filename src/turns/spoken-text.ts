/** Where a line ends, for whoever reads it. */
const LINE_END = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;
/** What is not seen at the beginning of a line. */
const UNSEEN = /^[\s\p{Cc}\p{Cf}]+/u;
/** The brackets in which the gateway speaks, and what looks like them. */
const BRACKETS: ReadonlySet<string> = new Set(['[', '［', '【', '〔', '〚', '⟦', '⁅', '﹝']);

/** Words of others for the agent to know of: each line is marked, so that none can pass for the gateway's. */
export function quoted(text: string): string {
  return text
    .split(LINE_END)
    .map((line) => `> ${line}`)
    .join('\n');
}

/**
 * A person's words in a conversation that several share. Lines that begin with a bracket are the gateway's there, which
 * says who speaks: those of a person are marked as quoted.
 */
export function withoutGatewayLines(text: string): string {
  const lines = text.split(LINE_END);
  return lines.some(beginsWithBracket)
    ? lines.map((line) => (beginsWithBracket(line) ? `> ${line}` : line)).join('\n')
    : text;
}

function beginsWithBracket(line: string): boolean {
  const [first = ''] = line.replace(UNSEEN, '');
  return BRACKETS.has(first);
}

/** Who speaks in a conversation that several share. The id comes first: names are chosen by their people. */
export function speakerLine(userId: string | null, userName: string | null): string {
  if (userId === null) return `[${userName ?? 'Somebody'}, without an id, says:]`;
  return `[User ${userId}${userName === null || userName === '' ? '' : `, called ${userName},`} says:]`;
}
