import { fieldsOf, nameOf } from '../fields.ts';
import type { Person } from '../platform.ts';
import type { SlackBot } from './slack-client.ts';

/** A name is not worth a longer wait: the message behind it has to be acknowledged. */
const ASK_MS = 500;
const KNOWN_MS = 3_600_000;
const UNKNOWN_MS = 60_000;
const MOST_KNOWN = 2000;

interface Known {
  readonly name: string | null;
  readonly until: number;
}

/** The names of people: messages of Slack carry only their ids. */
export class People {
  readonly #bot: SlackBot;
  readonly #known = new Map<string, Known>();

  constructor(bot: SlackBot) {
    this.#bot = bot;
  }

  /** The same person with a name, if it is known or soon found out. Never rejects. */
  async named(person: Person, signal: AbortSignal): Promise<Person> {
    if (person.name !== null || person.id === null || person.bot) return person;
    const name = await this.#nameOf(person.id, signal);
    return name === null ? person : { ...person, name };
  }

  async #nameOf(id: string, signal: AbortSignal): Promise<string | null> {
    const known = this.#known.get(id);
    const now = this.#bot.runtime.now();
    if (known !== undefined && known.until > now) return known.name;
    const name = await this.#ask(id, signal);
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(id, { name, until: now + (name === null ? UNKNOWN_MS : KNOWN_MS) });
    return name;
  }

  async #ask(id: string, signal: AbortSignal): Promise<string | null> {
    try {
      const user = fieldsOf((await this.#bot.call('users.info', { user: id }, signal, ASK_MS)).user);
      const profile = fieldsOf(user?.profile);
      return [profile?.display_name, profile?.real_name, user?.real_name, user?.name].map(nameOf).find(Boolean) ?? null;
    } catch {
      // Without the scope users:read nobody has a name; what people say matters more.
      return null;
    }
  }
}
