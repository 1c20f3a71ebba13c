import { type Fields, fieldsOf, listOf } from '../fields.ts';
import { Recent } from '../recent.ts';
import type { Self } from './parse.ts';
import { snowflakeOf } from './snowflake.ts';

const MOST_GUILDS = 5000;

/**
 * The role that a server has made for the bot. It is called as the bot is, and Discord offers both where somebody types the
 * name: whoever picks the role means the bot.
 */
export class OwnRoles {
  readonly #roles = new Recent<string | null>(MOST_GUILDS);
  readonly #ask: (route: `/${string}`) => Promise<unknown>;

  /** `ask` resolves with null for what Discord does not tell. */
  constructor(ask: (route: `/${string}`) => Promise<unknown>) {
    this.#ask = ask;
  }

  /** Us, as somebody may have named us in a message of this server. */
  async among(self: Self, message: Fields, guild: string | null): Promise<Self> {
    if (guild === null || listOf(message.mention_roles).length === 0) return self;
    const known = this.#roles.get(guild);
    const role = known === undefined ? ownIn(await this.#ask(`/guilds/${guild}/roles`), self) : known;
    this.#roles.set(guild, role);
    return { ...self, role };
  }
}

function ownIn(roles: unknown, { id }: Self): string | null {
  const own = listOf(roles)
    .map(fieldsOf)
    .find((role) => fieldsOf(role?.tags)?.bot_id === id);
  return snowflakeOf(own?.id);
}
