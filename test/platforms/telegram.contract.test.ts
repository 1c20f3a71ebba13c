import { createTelegram } from '../../src/platforms/telegram/platform.ts';
import { testRuntime } from './contract/scene.ts';
import { platformContract } from './contract.ts';
import { MAX_FILE_BYTES, telegramDriver } from './telegram-driver.ts';

const { abilities } = createTelegram({
  token: '1:x',
  apiRoot: 'http://127.0.0.1',
  webhook: null,
  maxFileBytes: MAX_FILE_BYTES,
  runtime: testRuntime(),
});

const plays = {
  acknowledgement: true,
  changes: true,
  echoes: true,
  repetition: true,
  groups: true,
  refusals: true,
  cuts: true,
};

platformContract('Telegram, asked for updates', { abilities, plays, makeDriver: () => telegramDriver('polling') });
platformContract('Telegram, by webhook', { abilities, plays, makeDriver: () => telegramDriver('webhook') });
