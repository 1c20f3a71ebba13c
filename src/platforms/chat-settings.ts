import { FromVariable, list, type Setting, setting } from '../settings/declaration.ts';
import { flag, identifier, optional, secret, text, webAddress } from '../settings/kinds.ts';

/** The settings that chat platforms have in common. */
export const enabled = setting(flag, true, 'false turns it off, whatever else is given');

export const apiRoot = setting(optional(webAddress), null, 'another address of its API, such as a server of your own');

export const people = {
  allow: list(identifier, 'users who may talk to the agent, beside `access.allow`'),
  require_mention: setting(flag, true, 'in groups, hear only what is said to the agent by name or as an answer'),
  wake_words: list(text, 'words that count as its name'),
};

/** A secret that a platform gave, by default from the environment. */
export function token(variable: string): Setting<string | null> {
  return setting(secret(optional(text)), new FromVariable(variable), 'null when that is not set');
}
