import { describe, expect, test } from 'vitest';
import { patience } from '../../test/support/patience.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { createLogger, type LogOptions } from './logger.ts';

function logOf(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const stream = { write: (line: string) => lines.push(line) };
  const log = createLogger({ level: 'debug', format: 'json', stream, ...options });
  return { log, lines, text: () => lines.join(''), records: () => lines.map((line) => JSON.parse(line)) };
}

test('a line is one JSON object with its time, level, fields and message', () => {
  const { log, records } = logOf();
  log.info('a session ended', { session: 'ses_1', messages: 3 });
  expect(records()).toEqual([
    { level: 'info', time: expect.stringMatching(/Z$/), session: 'ses_1', messages: 3, msg: 'a session ended' },
  ]);
});

test('a message is written as it is, also where it looks like a format', () => {
  const { log, records } = logOf();
  log.warn('100 %s of %d', { n: 1 });
  expect(records()[0].msg).toBe('100 %s of %d');
});

test('levels below the chosen one are not written, and silent writes nothing', () => {
  const warnings = logOf({ level: 'warn' });
  const silent = logOf({ level: 'silent' });
  for (const { log } of [warnings, silent])
    for (const level of ['debug', 'info', 'warn', 'error'] as const) log[level]('x');
  expect(warnings.records().map(({ level }) => level)).toEqual(['warn', 'error']);
  expect(silent.lines).toEqual([]);
});

test('the level can be changed later, for children too', () => {
  const { log, records } = logOf({ level: 'error' });
  const child = log.child({ session: 'ses_1' });
  child.info('before');
  log.setLevel('debug');
  child.info('after');
  log.setLevel('silent');
  child.error('never');
  expect(records().map(({ msg }) => msg)).toEqual(['after']);
});

test('a child carries its fields on every line', () => {
  const { log, records } = logOf();
  log.child({ instance: 'ins_1' }).child({ session: 'ses_1' }).error('x', { turn: 'trn_1' });
  expect(records()[0]).toMatchObject({ instance: 'ins_1', session: 'ses_1', turn: 'trn_1' });
});

test('an error is written with code, message, stack, details and causes', () => {
  const { log, records } = logOf();
  const cause = new Error('no space left');
  log.error('x', { error: new MoiraiError('store_full', 'the disk is full', { cause, details: { path: '/srv' } }) });
  expect(records()[0].error).toMatchObject({
    ...{ type: 'MoiraiError', code: 'store_full', message: 'the disk is full', details: { path: '/srv' } },
    stack: expect.stringContaining('logger.test.ts'),
    cause: { message: 'no space left', stack: expect.any(String) },
  });
});

test('what refers to itself, is deep or is no JSON can be logged', () => {
  const { log, records } = logOf();
  const circle: Record<string, unknown> = { n: 1n, when: new Date(0), map: new Map([['a', new Set([1])]]) };
  circle.self = circle;
  log.info('x', { circle, nothing: null });
  expect(records()[0]).toMatchObject({
    circle: { n: '1', when: '1970-01-01T00:00:00.000Z', map: { a: [1] }, self: '(circular)' },
    nothing: null,
  });
});

const SECRET = 'k"ey/with strange+chars';
const SECRETS = [SECRET, 'sk-1234567890', 'sk-1234567890-longer'];

/** One of everything that could carry a secret. */
function tellSecrets(log: ReturnType<typeof logOf>['log']): void {
  const error = new MoiraiError('model_refused', `refused ${SECRET}`, {
    details: { headers: { authorization: 'Basic cGFzc3dvcmQ=' }, sent: ['sk-1234567890-longer'] },
    cause: new Error(`postgres://ada:hunter22@host/db and Bearer abcdef.ghi and ${encodeURIComponent(SECRET)}`),
  });
  log.child({ token: 'child-hidden', note: `child ${SECRET}` }).warn(`said ${SECRET}`, { error });
  log.info('x', { api_key: 'hidden-1', apiKey: 'hidden-2', 'x-api-key': 'hidden-3', app_token: 'hidden-4' });
  log.info('x', {
    deep: [{ list: [{ client_secret: 'hidden-5', Password: 'hidden-6', 'set-cookie': ['hidden-7'] }] }],
  });
  log.info('x', { [SECRET]: 1, env: new Map([['BOT_TOKEN', 'hidden-8']]), url: new URL('https://u:hidden-9@host/') });
}

test.each(['json', 'pretty'] as const)('no secret appears in a %s log, wherever it stood', (format) => {
  const { log, text } = logOf({ format, secrets: SECRETS });
  tellSecrets(log);
  expect(text()).toContain('***');
  expect(text()).not.toMatch(/hidden|hunter22|cGFzc3dvcmQ|abcdef\.ghi|sk-1234567890|longer|strange/);
});

test('a secret that comes to be known later is hidden from then on, by children of the log too', () => {
  const { log, text } = logOf({ secrets: [] });
  const child = log.child({ platform: 'loom' });
  log.setSecrets(['sesame-open']);
  for (const each of [log, child]) each.info('the word is sesame-open');
  expect(text()).not.toContain('sesame-open');
});

test('what only sounds like a secret is shown: counted tokens, keys of sessions, secrets too short to be one', () => {
  const { log, records } = logOf({ secrets: ['', 'a'] });
  const fields = { tokens: 12, max_tokens: 5, session_key: 'agent:main:web:dm:1', token: null, tokenizer: 'cl100k' };
  log.info('a banana', fields);
  expect(records()[0]).toMatchObject({ ...fields, msg: 'a banana' });
});

test('a pretty line is for people, and nothing in it acts on the terminal', () => {
  const { log, text } = logOf({ format: 'pretty' });
  log.info('first\nINFO: forged \u001b[31m', { session: 'ses_1', error: new Error('red \u001b[31m') });
  expect(text()).toMatch(
    /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\] INFO: first\\nINFO: forged \\u001b\[31m \{"session":"ses_1"\}\n/,
  );
  expect(text()).not.toContain('\u001b');
});

const HOSTILE = {
  escapes: 'a\u001b[31mred\u001b]0;title\u0007 \u009b31m \u007f',
  lines: 'one\nINFO: forged\r\n{"level":"info"}\u0085\u2028\u2029INFO: forged',
  directions: 'abc\u202etxt.exe\u202c \u2066x\u2069 \u200f\u200e\u061c',
  invisible: 'a\u200bb\ufeffc\u00ad \u{e0041}\u{e007f}',
  halves: 'a\ud800b\udc00',
};
/** Everything that acts on a terminal, on the order of letters, or on nothing one could see. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const ACTING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]|\p{Cf}/u;

describe.each(['json', 'pretty'] as const)('in a %s log', (format) => {
  test.each(Object.entries(HOSTILE))('hostile text is harmless wherever it stands: %s', (_, text) => {
    const { log, text: written, lines } = logOf({ format });
    const error = new MoiraiError('bad_input', text, { cause: new TypeError(text), details: { text, [text]: text } });
    log
      .child({ who: text, [text]: 1 })
      .warn(text, { text, [text]: text, deep: [{ [text]: [text] }], error, err: text });
    expect(lines).toHaveLength(1);
    expect(written()).not.toMatch(ACTING);
    // Nothing in it passes for a line of its own: what a line begins with is ours.
    const [first, ...rest] = written().trimEnd().split('\n');
    expect(first).toMatch(format === 'json' ? /^\{"level":"warn","time":"/ : /^\[\d{4}-\d\d-\d\d .* WARN: /);
    for (const line of rest) expect(line).toMatch(/^ {4}/);
    expect(format === 'json' ? rest : []).toEqual([]);
  });

  test('a long text is shortened behind its beginning, and its secrets are hidden before that', () => {
    const { log, text: written } = logOf({ format, secrets: ['sesame-open'] });
    log.warn('m'.repeat(10_000), {
      long: `${'x'.repeat(3995)}sesame-open${'y'.repeat(10_000)}`,
      fits: 'z'.repeat(4000),
    });
    expect(written().length).toBeLessThan(13_000);
    expect(written()).toContain('... (6000 more)');
    expect(written()).toContain('x***yy... (9998 more)');
    expect(written()).toContain(`${'z'.repeat(4000)}"`);
    expect(written()).not.toContain('sesa');
  });
});

test('what JSON spells out means the same to a program', () => {
  const { log, records } = logOf();
  const { halves: _, ...whole } = HOSTILE;
  log.info('x', whole);
  expect(records()[0]).toMatchObject(whole);
});

test('no text takes long', () => {
  const { log } = logOf({ secrets: ['sesame-open'] });
  const began = performance.now();
  for (const text of ['a.'.repeat(500_000), 'a:'.repeat(500_000), 'Bearer '.repeat(150_000), '://a:'.repeat(200_000)]) {
    log.info('x', { text });
  }
  expect(performance.now() - began).toBeLessThan(patience(2000));
});
