import { Random } from '../simulation/random.ts';
import { findExpressions } from './expressions.ts';

const MARKDOWN = [
  ...['*', '**', '***', '_', '__', '~~', '`', '``', '```', '~~~', '\n', '\n\n', '> ', '>> ', '- ', '+ ', '1. ', '# '],
  ...['###### ', '|', '|---|', '|:-:|', ':-', '---', '[', ']', '](', ')', '![', '(', '<', '>', '\\', '"', '  ', '\t'],
  ...['- [ ] ', '- [x] ', 'https://x.org/a_(b)', 'http://', '](https://x.org "', ' #', ' ##', 'word ', 'a', '!'],
];
const HTML = [
  ...['<', '>', '<!--', '-->', '<!', '<?', '</', '<p>', '</p>', '<li>', '<li ', '<br', '<script>', '</script', '<svg'],
  ...['</svg>', '<head>', '<style ', '<title>', '</title>', '<template>', '<a href="', '"', "'", '=', '&', '&amp;'],
  ...['&#x', '&#1114112;', ';', ' ', '\n', 'word', '<![CDATA[', ']]>'],
];
const UNICODE = [
  ...[
    '\ufeff',
    '\u0000',
    '\u202e',
    '\u200b',
    '\u2028',
    '\u0301',
    '\ud800',
    '\udfff',
    '👩‍👩‍👧‍👦',
    '🇩🇪',
    'İ',
    'ß',
    'ﬁ',
    '\u00ad',
  ],
  ...['مرحبا', '你好', 'नमस्ते', '\u{e0061}', '\u{10ffff}', '\r', '\u0085', '\u00a0', '\u3000', 'Z̷̡͝', '\x1b[31m', 'a'],
];
const SPEECH = [
  ...[
    '/new ',
    '/cron ',
    'every ',
    'at ',
    'in ',
    '@',
    '0 9 * * * ',
    '"',
    'Bearer ',
    'Basic ',
    '://',
    'postgres://u:',
    '@h',
  ],
  ...['data: ', 'data:', 'event: x', '{"a":', '[', '}', ']', ',', 'none', 'say ', 'agent:main:', '%3A', ':', '..', '/'],
  ...['$', '${', '}', '=', '#', 'export ', '\\', '\n', ' ', '- ', '2026-01-01T00:00', '30m', 'hi'],
];
const GRAMMARS = [MARKDOWN, HTML, UNICODE, SPEECH];

export const LARGEST = 1024 * 1024;

/** Texts from outside, always the same for the same seed: made by grammars, or of repeated pieces of our expressions. */
export class Texts {
  readonly #random: Random;
  readonly #units = unitsOfExpressions();

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  next(): string {
    const random = this.#random;
    const length = this.#length();
    if (random.chance(0.5)) return this.#written(length);
    return this.#repeated(length);
  }

  /** Mostly as people write, sometimes as long as anything can be. */
  #length(): number {
    const random = this.#random;
    if (random.chance(0.9)) return random.between(1, 2000);
    if (random.chance(0.9)) return random.between(2000, 20_000);
    return random.chance(0.5) ? LARGEST : random.between(20_000, LARGEST);
  }

  #written(length: number): string {
    const random = this.#random;
    const parts: string[] = [];
    for (let size = 0, tokens = random.pick(GRAMMARS); size < length; ) {
      if (random.chance(0.02)) tokens = random.pick(GRAMMARS);
      const part = random.pick(tokens);
      parts.push(part);
      size += part.length;
      // A long one says the same again and again.
      if (parts.length === 2000) return this.#times(parts.join(''), length);
    }
    return parts.join('');
  }

  #repeated(length: number): string {
    const random = this.#random;
    const pick = (): string => random.pick(random.chance(0.5) ? this.#units : random.pick(GRAMMARS));
    const [before, unit, after] = [pick(), pick() + (random.chance(0.5) ? pick() : ''), pick()];
    const repeated = this.#times(unit, length - before.length - after.length);
    // What makes an expression fail at the end is what makes it try again.
    return before + repeated + after;
  }

  #times(unit: string, length: number): string {
    return unit.repeat(Math.max(1, Math.floor(length / unit.length)));
  }
}

/** Examples of what the tokens of our own expressions match. */
function unitsOfExpressions(): string[] {
  const units = new Set<string>();
  for (const { pattern } of findExpressions().literal) {
    const tokens =
      pattern.match(/\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u[\da-f]{4}|\\.|\[(?:\\.|[^\]])*\]|[^()|?*+{}^$[\]]/gi) ?? [];
    const examples = tokens.map(exampleOf);
    for (const [index, example] of examples.entries()) {
      units.add(example);
      units.add(example + (examples[index + 1] ?? ''));
    }
    units.add(examples.join(''));
  }
  return [...units].filter((unit) => unit !== '');
}

const CLASSES: Readonly<Record<string, string>> = {
  s: ' ',
  S: 'x',
  d: '7',
  D: 'x',
  w: 'w',
  W: '-',
  n: '\n',
  r: '\r',
  t: '\t',
};

function exampleOf(token: string): string {
  if (token.startsWith('[^')) return token.includes('x') ? 'y' : 'x';
  if (token.startsWith('[')) return exampleOf(/^\[(\\.|[^\]])/.exec(token)?.[1] ?? 'x');
  if (/^\\u./.test(token)) return String.fromCodePoint(Number.parseInt(token.replace(/[^\da-f]/gi, ''), 16));
  if (/^\\p/i.test(token)) return 'é';
  if (token.startsWith('\\'))
    return CLASSES[token.charAt(1)] ?? (/[bB\dk]/.test(token.charAt(1)) ? '' : token.charAt(1));
  return token === '.' ? 'x' : token;
}
