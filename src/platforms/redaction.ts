/** Takes secrets out of a text: errors quote addresses and headers, and some of those contain them. */
export type Redact = (text: string) => string;

export function redaction(...secrets: readonly (string | null)[]): Redact {
  const spellings = secrets.flatMap((secret) => (secret ? [secret, encodeURIComponent(secret)] : []));
  return (text) => spellings.reduce((rest, spelling) => rest.replaceAll(spelling, '<secret>'), text);
}
