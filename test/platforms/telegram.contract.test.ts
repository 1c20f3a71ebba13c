import { TELEGRAM_ABILITIES } from '../../src/platforms/telegram/abilities.ts';
import { platformContract } from './contract.ts';
import { telegramDriver } from './telegram-driver.ts';

const abilities = TELEGRAM_ABILITIES;

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
