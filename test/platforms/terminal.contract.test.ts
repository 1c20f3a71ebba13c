import { platformContract } from './contract.ts';
import { TERMINAL_ABILITIES, terminalDriver } from './terminal-driver.ts';

const plays = {
  ...{ acknowledgement: false, repetition: false, cuts: false },
  ...{ changes: false, echoes: false, groups: false, refusals: false },
};

platformContract('The terminal', { abilities: TERMINAL_ABILITIES, plays, makeDriver: terminalDriver });
