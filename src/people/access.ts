import type { Config } from '../config/config.ts';
import type { Person, Place } from '../platforms/platform.ts';
import { chatSettings } from '../platforms/registry.ts';
import type { Store } from '../store/port.ts';

/** Somebody at a place, as far as access goes. */
export interface Requester {
  readonly platform: string;
  readonly userId: string | null;
  readonly bot: boolean;
  readonly place: Pick<Place, 'type' | 'chat'>;
}

type AccessConfig = Pick<Config, 'access' | 'platforms'>;

/** Nobody is kept from finding out what there is and who they are. */
const FLOOR: ReadonlySet<string> = new Set(['help', 'whoami']);

/**
 * Who may talk to the agent, and who may do what. Default is no. The same question is asked for a message, a press of a
 * button, a turn that waited, and a turn that goes on after a restart: whoever was shut out meanwhile is out.
 */
export class Access {
  readonly #store: Store;
  readonly #config: () => AccessConfig;

  constructor(store: Store, config: () => AccessConfig) {
    this.#store = store;
    this.#config = config;
  }

  async admits(requester: Requester): Promise<boolean> {
    const { platform, userId, bot, place } = requester;
    if (place.type !== 'dm' && this.#isListed(platform, place.chat)) return !bot;
    if (userId === null) return false;
    if (this.#isNamed(platform, userId)) return true;
    if (bot) return false;
    if (this.#isListed(platform, userId)) return true;
    return this.#store.read('isPaired', { platform, userId });
  }

  /** Without any admin named, everybody who may talk is one. */
  isAdmin(platform: string, userId: string | null): boolean {
    const { admins } = this.#config().access;
    return admins.length === 0 || (userId !== null && matches(admins, platform, userId));
  }

  /** Named as one: enough to answer in somebody else's place. */
  isNamedAdmin(platform: string, userId: string | null): boolean {
    return this.#config().access.admins.length > 0 && this.isAdmin(platform, userId);
  }

  /** Why somebody may not give a command; null when they may. */
  refusal(command: { readonly name: string; readonly operator?: true }, requester: Requester): string | null {
    if (FLOOR.has(command.name) || this.isAdmin(requester.platform, requester.userId)) return null;
    const { dm, group } = this.#config().access.commands;
    const allowed = requester.place.type === 'dm' ? dm : group;
    if (allowed.length > 0 ? allowed.includes(command.name) : !command.operator) return null;
    const rest =
      allowed.length === 0 ? '' : ` You may use ${[...FLOOR, ...allowed].map((name) => `/${name}`).join(', ')}.`;
    return `/${command.name} is not for you here.${rest}`;
  }

  /** By the whole name, so that even a bot may be let in by who means it. */
  #isNamed(platform: string, userId: string): boolean {
    return this.#lists(platform).some((list) => list.includes(`${platform}:${userId}`));
  }

  #isListed(platform: string, id: string): boolean {
    const [everywhere = [], here = []] = this.#lists(platform);
    return matches(everywhere, platform, id) || here.includes('*') || here.includes(id) || matches(here, platform, id);
  }

  #lists(platform: string): readonly (readonly string[])[] {
    const config = this.#config();
    return [config.access.allow, chatSettings(config, platform).allow];
  }
}

function matches(list: readonly string[], platform: string, id: string): boolean {
  return (
    list.includes('*') || list.includes(`${platform}:*`) || list.includes(`${platform}:${id}`) || list.includes(id)
  );
}

export function requesterOf(platform: string, { id, bot }: Person, place: Place): Requester {
  return { platform, userId: id, bot, place };
}
