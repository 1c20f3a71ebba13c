import type { Head } from './head.ts';

/**
 * Why nobody should answer a mail, after RFC 3834: it was written by a program, or sent to many. Null for a mail of a
 * person. Two programs that answer each other never end.
 */
export function whyAutomatic({ fields, from }: Head): string | null {
  const value = (name: string): string => (fields.get(name)?.[0] ?? '').trim().toLowerCase();
  const firstWord = (name: string): string => /^[a-z-]*/.exec(value(name))?.[0] ?? '';
  if (fields.has('auto-submitted') && firstWord('auto-submitted') !== 'no') return 'Auto-Submitted';
  if (BULK.has(firstWord('precedence'))) return 'Precedence';
  if (/\b(?:all|autoreply|oof)\b/.test(value('x-auto-response-suppress'))) return 'X-Auto-Response-Suppress';
  for (const name of fields.keys()) {
    if (name.startsWith('list-')) return 'List-Id';
    if (MARKS.has(name)) return 'an automatic reply';
  }
  if (fields.has('return-path') && value('return-path') === '<>') return 'an empty Return-Path';
  if (/^multipart\/report\b/.test(value('content-type'))) return 'a report';
  const [local = ''] = from?.address.split('@') ?? [];
  return ROBOTS.test(local) ? 'an address that nobody reads' : null;
}

const BULK: ReadonlySet<string> = new Set(['bulk', 'list', 'junk', 'auto_reply', 'auto-reply']);
const MARKS: ReadonlySet<string> = new Set(['x-autoreply', 'x-autorespond', 'x-auto-reply', 'x-loop']);
const ROBOTS = /^(?:mailer-daemon|postmaster|no-?reply|do-?not-?reply|bounces?)(?:[+.-]|$)/;
