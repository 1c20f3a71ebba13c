import { describe, expect, test } from 'vitest';
import { descriptor } from '../../../src/platforms/whatsapp/descriptor.ts';
import { readSettings } from '../../../src/settings/read-settings.ts';

const read = (written: object, variables: Readonly<Record<string, string>> = {}) =>
  readSettings(descriptor.settings, written, { home: '', variable: (name) => variables[name] ?? null });

const NEW = {
  WHATSAPP_PHONE_NUMBER_ID: '1',
  WHATSAPP_TOKEN: 'token',
  WHATSAPP_APP_SECRET: 'secret',
  WHATSAPP_VERIFY_TOKEN: 'word',
};
const OLD = {
  WHATSAPP_CLOUD_PHONE_NUMBER_ID: '1',
  WHATSAPP_CLOUD_ACCESS_TOKEN: 'token',
  WHATSAPP_CLOUD_APP_SECRET: 'secret',
  WHATSAPP_CLOUD_VERIFY_TOKEN: 'word',
};

describe('the settings of WhatsApp', () => {
  test.each([[NEW], [OLD]])('come from the environment: %j', (variables) => {
    const { value, issues } = read({}, variables);
    expect(issues).toEqual([]);
    expect(value).toMatchObject({ phoneNumberId: '1', token: 'token', appSecret: 'secret', verifyToken: 'word' });
    expect(descriptor.missing(value)).toEqual([]);
  });

  test('that are missing are named', () => {
    expect(descriptor.missing(read({}).value)).toEqual(['phone_number_id', 'token', 'app_secret', 'verify_token']);
  });

  test('of two numbers may share a token', () => {
    const [one, two] = ['1', '2'].map((phone_number_id) => read({ phone_number_id, token: 'token' }).value);
    expect(descriptor.credential(one!)).not.toBe(descriptor.credential(two!));
  });

  test.each([
    [{ template: { name: 'Late Reply' } }],
    [{ template: { name: 'late_reply', language: 'English' } }],
    [{ api_version: 'latest' }],
  ])('that Meta would not know are refused: %j', (written) => {
    expect(read(written).issues).toHaveLength(1);
  });

  test('have no template by default', () => {
    expect(read({}).value).toMatchObject({ template: { name: null, language: 'en' }, apiVersion: 'v25.0' });
  });
});
