import { platformContract } from './contract.ts';
import { HTTP_ABILITIES, httpDriver } from './http-driver.ts';

const plays = {
  ...{ acknowledgement: true, repetition: true, cuts: true },
  ...{ changes: false, echoes: false, groups: false, refusals: false },
};

for (const name of ['api', 'web'] as const) {
  platformContract(`HTTP, as ${name}`, { abilities: HTTP_ABILITIES, plays, makeDriver: () => httpDriver(name) });
}
