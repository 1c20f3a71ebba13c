import { MoiraiError } from '../errors/moirai-error.ts';
import { nearestName } from '../lifecycle/events.ts';
import type { Store } from '../store/port.ts';

const PREFIXES = ['', 'hook:', 'webhook:', 'memory:', 'plugin:'];

/** The subscriber that is meant: by its whole name, or without the prefix when that is clear. */
export async function findSubscriber(store: Store, name: string): Promise<string> {
  const names = (await store.read('listSubscribers', {})).map((each) => each.name);
  const meant = PREFIXES.map((prefix) => `${prefix}${name}`).filter((each) => names.includes(each));
  const [found, another] = meant;
  if (found === undefined) throw notFound(name, names);
  if (another !== undefined && found !== name) {
    throw new MoiraiError('bad_input', `"${name}" is the name of both ${found} and ${another}; give one of these`);
  }
  return found;
}

/** `hook_not_found`, with the nearest name there is. */
export function notFound(name: string, names: readonly string[]): MoiraiError {
  const nearest = names.length === 0 ? '' : `; did you mean "${nearestName(name, names)}"?`;
  return new MoiraiError('hook_not_found', `no hook or webhook "${name}"${nearest}`);
}
