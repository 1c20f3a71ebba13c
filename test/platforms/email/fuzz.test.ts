import { describe, expect, test } from 'vitest';
import { failedMessage } from '../../../src/platforms/email/bounce.ts';
import { readHead } from '../../../src/platforms/email/head.ts';
import { readMail } from '../../../src/platforms/email/parse.ts';
import { parseMime } from '../../fakes/mime-tree.ts';
import { fuzzOf } from '../fuzz.ts';
import { oddPayloads } from '../odd-payloads.ts';
import { subject } from './subject.ts';
import { AGENT } from './world.ts';

describe('10,000 odd mails', () => {
  const payload = oddPayloads(subject.samples);

  test('make the parser neither throw nor give what the contract does not know', async () => {
    for (let index = 0; index < 10_000; index += 1) {
      const { mail } = payload();
      const lines = (Array.isArray(mail) ? mail : [mail]).map((line) =>
        typeof line === 'string' ? line : JSON.stringify(line),
      );
      const raw = Buffer.from(lines.join('\r\n'));
      const { header, body: content } = parseMime(raw);
      const head = await readHead(header);
      const known = index % 2 === 0;
      const body = { plain: [{ header, content }], html: { header, content }, files: [], cut: false };
      const { place, from, id, messageId, text, at } = await readMail(head, body, { address: AGENT, at: 5, known });
      expect(place.chat).toMatch(/^[\x21-\x7e]{1,250}$/);
      expect(id).toMatch(/^email:[\x21-\x7e]{1,700}$/);
      expect(messageId).toMatch(/^[\x21-\x7e]{1,700}$/);
      expect([typeof from.id, from.id]).toSatisfy(([type, value]) => type === 'string' || value === null);
      expect([typeof text, text.isWellFormed(), text.length < 40_000, at]).toEqual(['string', true, true, 5]);
      await failedMessage({ status: content, original: raw }, AGENT);
    }
  }, 120_000);
});

fuzzOf(subject);
