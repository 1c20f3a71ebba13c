import { describe, expect, test } from 'vitest';
import { descriptor } from '../../../src/platforms/qq/descriptor.ts';
import { hostsOf } from '../../../src/platforms/qq/hosts.ts';
import { mediaAddress } from '../../../src/platforms/qq/media-address.ts';
import { readSettings } from '../../../src/settings/read-settings.ts';
import { testRuntime } from '../contract/scene.ts';

const settingsWith = (variables: Readonly<Record<string, string>>, written: object = {}) =>
  readSettings(descriptor.settings, written, { home: '', variable: (name) => variables[name] ?? null }).value;

describe('the settings', () => {
  test.each([
    ['the names of today', { QQ_APP_ID: '102', QQ_CLIENT_SECRET: 'new' }, '102', 'new'],
    ['the older names', { QQBOT_APP_ID: '101', QQBOT_CLIENT_SECRET: 'old' }, '101', 'old'],
    [
      'both, of which those of today count',
      { QQ_APP_ID: '102', QQBOT_APP_ID: '101', QQ_CLIENT_SECRET: 'new', QQBOT_CLIENT_SECRET: 'old' },
      '102',
      'new',
    ],
  ])('come from the environment under %s', (_, variables, appId, clientSecret) => {
    const settings = settingsWith(variables);
    expect(settings).toMatchObject({ appId, clientSecret, mode: 'websocket', sandbox: false });
    expect(descriptor.missing(settings)).toEqual([]);
  });

  test('say what is missing', () => {
    expect(descriptor.missing(settingsWith({}))).toEqual(['app_id', 'client_secret']);
  });

  test('with an AppID that is none are refused before anything is sent', async () => {
    const settings = { ...settingsWith({ QQ_CLIENT_SECRET: 'x' }), appId: '../x' };
    await expect(descriptor.make(settings, testRuntime('qq'))).rejects.toThrow('AppID');
  });
});

test('the hosts are those of QQ, of its sandbox, or one in the place of all', () => {
  const own = 'http://127.0.0.1:1';
  expect(hostsOf(null, false)).toEqual({
    ...{ tokenRoot: 'https://api.bot.qq.com', apiRoot: 'https://api.bot.qq.com', mediaRoot: null },
  });
  expect(hostsOf(null, true).apiRoot).toBe('https://sandbox.api.bot.qq.com');
  expect(hostsOf(own, true)).toEqual({ tokenRoot: own, apiRoot: own, mediaRoot: own });
});

test('files are at hosts of QQ over https, and with a root of one’s own only there', () => {
  const file = 'https://multimedia.nt.qq.com.cn/download?rkey=x';
  expect(mediaAddress(file, null)).toBe(file);
  expect(mediaAddress(file.replace('https', 'http'), null)).toBe(file);
  expect(mediaAddress('http://multimedia.nt.qq.com.cn:8080/x', null)).toBeNull();
  expect(mediaAddress('https://qqbot.ugcimg.cn/uservoice/a.wav', null)).not.toBeNull();
  expect(mediaAddress('https://other.ugcimg.cn/a.wav', null)).toBeNull();
  expect(mediaAddress('https://evil.test/download', null)).toBeNull();
  expect(mediaAddress('https://user@evilqq.com/', null)).toBeNull();
  expect(mediaAddress(file, 'http://127.0.0.1:1')).toBe('http://127.0.0.1:1/download?rkey=x');
  expect(mediaAddress('http://127.0.0.1:2/x', 'http://127.0.0.1:1')).toBeNull();
});
