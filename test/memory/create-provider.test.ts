import { expect, test } from 'vitest';
import { createProviders } from '../../src/memory/create-provider.ts';
import type { Store } from '../../src/store/port.ts';

const store = {} as Store;
const settings = { baseUrl: null, apiKey: 'key' };
const namesOf = (provider: string, more = {}) =>
  createProviders({ ...settings, provider, ...more }, store, [{ name: 'mine' }]).map(({ name }) => name);

test('a configuration names one memory, of ours or of a plugin, or none', () => {
  for (const name of ['files', 'sqlite', 'mem0', 'honcho', 'supermemory', 'mine'])
    expect(namesOf(name)).toEqual([name]);
  expect(namesOf('none')).toEqual([]);
});

test('a memory that nobody has, or that lacks its key or a proper address, is refused', () => {
  const code = 'memory_provider';
  expect(() => namesOf('yours')).toThrow(expect.objectContaining({ code, message: expect.stringContaining('mine') }));
  expect(() => namesOf('constructor')).toThrow(expect.objectContaining({ code }));
  expect(() => namesOf('mem0', { apiKey: null })).toThrow(expect.objectContaining({ code }));
  for (const baseUrl of ['ftp://x', 'http://u:p@x', 'x']) {
    expect(() => namesOf('honcho', { baseUrl })).toThrow(expect.objectContaining({ code }));
  }
});
