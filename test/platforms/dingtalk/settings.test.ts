import { describe, expect, test } from 'vitest';
import { descriptor } from '../../../src/platforms/dingtalk/descriptor.ts';
import { readSettings } from '../../../src/settings/read-settings.ts';
import { never, testRuntime } from '../contract/scene.ts';
import { DingtalkWorld } from './world.ts';

const settingsWith = (variables: Readonly<Record<string, string>>, written: object = {}) =>
  readSettings(descriptor.settings, written, { home: '', variable: (name) => variables[name] ?? null }).value;

describe('the settings', () => {
  test('come from the environment, and all that is left out has a value', () => {
    const settings = settingsWith({ DINGTALK_CLIENT_ID: 'ding1', DINGTALK_CLIENT_SECRET: 'secret' });
    expect(settings).toMatchObject({ clientId: 'ding1', clientSecret: 'secret', robotCode: null });
    expect(settings).toMatchObject({ cardTemplate: null, cardVariable: 'content' });
    expect(descriptor.missing(settings)).toEqual([]);
  });

  test('say what is missing', () => {
    expect(descriptor.missing(settingsWith({}))).toEqual(['client_id', 'client_secret']);
  });

  test('without a robot code mean the robot that is called like the app', async () => {
    await using world = await DingtalkWorld.open({ card: false });
    const { robot_code: _, ...app } = world.settings;
    const platform = await descriptor.make(settingsWith({}, app), testRuntime('dingtalk'));
    expect(await platform.identify?.(never)).toBe(`robot ${world.fake.clientId}`);
  });
});
