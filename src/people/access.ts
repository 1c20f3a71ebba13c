import type { Config } from '../config/config.ts';
import { platformName, splitPlatformName } from '../lifecycle/session-key.ts';
import type { ApprovalAnswer } from '../lifecycle/states.ts';
import type { Person, Place } from '../platforms/platform.ts';
import { chatSettings } from '../platforms/registry.ts';
import type { Store } from '../store/port.ts';

/** Somebody at a place, as far as access goes. */
export interface Requester {
  readonly platform: string;
  /** The account of the platform, where it has settings of its own. */
  readonly account?: string;
  readonly userId: string | null;
  readonly bot: boolean;
  readonly place: Pick<Place, 'type' | 'chat'>;
}

type AccessConfig = Pick<Config, 'access' | 'platforms'>;

/** Who answers a question: a person of a platform, or who has the terminal or a key. */
export interface Answerer {
  /** As the log names it: `telegram:42`, `api`, `cli`. */
  readonly name: string;
  /** Distinct from everybody on every platform, as the question names whose work it is about; null where nobody has a name. */
  readonly person: string | null;
  readonly admin: boolean;
}

/** `admins only`: it was asked for this person, who may refuse it, and not allow it. */
export type AnswerRight = 'yes' | 'admins only' | 'not yours';

/**
 * The one rule of who may answer what an agent asks: an admin anything; who asked for the work may refuse it, and allow
 * it where `access.approvals` is `asker`, but not always, which would be for everybody; nobody else.
 */
export function mayAnswer(
  by: Answerer,
  askedOf: string | null,
  decision: ApprovalAnswer,
  approvals: Config['access']['approvals'],
): AnswerRight {
  if (by.admin) return 'yes';
  if (by.person === null || by.person !== askedOf) return 'not yours';
  return decision === 'deny' || (approvals === 'asker' && decision !== 'always') ? 'yes' : 'admins only';
}

/** How somebody becomes an admin, for who is told that only admins may. */
export function promotionHint(platform: string, userId: string | null): string {
  return `Whoever runs the gateway makes an admin with: moirai pairing promote ${platform} ${userId ?? 'ID'}`;
}

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
    if (place.type !== 'dm' && this.#isListed(requester, place.chat)) return !bot;
    if (userId === null) return false;
    if (this.#isNamed(requester, userId)) return true;
    if (bot) return false;
    if (this.#isListed(requester, userId)) return true;
    return this.#store.read('isPaired', { platform, userId });
  }

  /** Named in `access.admins`, or made one by `moirai pairing`. That a person may talk at all is asked before. */
  async isAdmin(platform: string, userId: string | null): Promise<boolean> {
    if (userId === null) return false;
    if (matches(this.#config().access.admins, platform, userId)) return true;
    return this.#store.read('isPairedAdmin', { platform, userId });
  }

  /** The admins that have a name of their own: `*` is nobody to write to. */
  async admins(): Promise<{ readonly platform: string; readonly userId: string }[]> {
    const paired = (await this.#store.read('listPairings', {})).filter(({ admin }) => admin);
    const named = this.#config().access.admins.flatMap((name) => {
      const [, platform, userId] = /^([^:]+):([^*].*)$/.exec(name) ?? [];
      return platform === undefined || userId === undefined ? [] : [{ platform, userId }];
    });
    const all = [...named, ...paired.map(({ platform, userId }) => ({ platform, userId }))];
    return [...new Map(all.map((admin) => [`${admin.platform}:${admin.userId}`, admin])).values()];
  }

  /** A person of a platform as one who answers a question. */
  async answerer({ platform, userId }: Pick<Requester, 'platform' | 'userId'>): Promise<Answerer> {
    const name = `${platform}:${userId}`;
    return { name, person: userId === null ? null : name, admin: await this.isAdmin(platform, userId) };
  }

  /** Whether a person may allow what an agent does for that same person. */
  async mayApproveOwn(platform: string, userId: string | null): Promise<boolean> {
    const by = await this.answerer({ platform, userId });
    return mayAnswer(by, by.person, 'once', this.#config().access.approvals) === 'yes';
  }

  /** Why somebody may not give a command; null when they may. */
  async refusal(
    command: { readonly name: string; readonly operator?: true },
    requester: Requester,
  ): Promise<string | null> {
    const { platform, userId, place } = requester;
    if (FLOOR.has(command.name) || (await this.isAdmin(platform, userId))) return null;
    const { dm, group } = this.#config().access.commands;
    const allowed = place.type === 'dm' ? dm : group;
    if (allowed.length > 0 ? allowed.includes(command.name) : !command.operator) return null;
    if (allowed.length === 0) return `/${command.name} is for admins. ${promotionHint(platform, userId)}`;
    const rest = [...FLOOR, ...allowed].map((name) => `/${name}`).join(', ');
    return `/${command.name} is not for you here. You may use ${rest}.`;
  }

  /** By the whole name, so that even a bot may be let in by who means it. */
  #isNamed(requester: Requester, userId: string): boolean {
    return this.#lists(requester).some((list) => list.includes(`${requester.platform}:${userId}`));
  }

  #isListed(requester: Requester, id: string): boolean {
    const { platform } = requester;
    const [everywhere = [], here = []] = this.#lists(requester);
    return matches(everywhere, platform, id) || here.includes(id) || matches(here, platform, id);
  }

  #lists(requester: Requester): readonly (readonly string[])[] {
    const config = this.#config();
    return [config.access.allow, chatSettings(config, platformName(requester)).allow];
  }
}

function matches(list: readonly string[], platform: string, id: string): boolean {
  return list.includes('*') || list.includes(`${platform}:*`) || list.includes(`${platform}:${id}`);
}

/** `name` is that of the platform, with its account. */
export function requesterOf(name: string, { id, bot }: Person, place: Place): Requester {
  return { ...splitPlatformName(name), userId: id, bot, place };
}
