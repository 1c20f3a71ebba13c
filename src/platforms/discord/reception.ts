import { ChatQueues } from '../chat-queues.ts';
import type { Connection } from '../connection.ts';
import { pause } from '../deadline.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../fields.ts';
import type { Inbox, PlatformEvent } from '../platform.ts';
import { Recent } from '../recent.ts';
import type { DiscordApi } from './api.ts';
import { type Channel, ChannelDirectory, channelOf, placeOf } from './channels.ts';
import { sendFailureOf } from './failures.ts';
import type { Interactions } from './interactions.ts';
import type { KeptMarks } from './kept-state.ts';
import { OwnRoles } from './own-roles.ts';
import { channelIn, parseInteraction, parseMessage, type Self } from './parse.ts';
import { parseEvents } from './parse-events.ts';
import { compareIds, holdsTime, laterOf, snowflakeAt, snowflakeOf } from './snowflake.ts';

export interface ReceptionDeps {
  readonly api: DiscordApi;
  readonly inbox: Inbox;
  readonly connection: Connection;
  readonly marks: KeptMarks;
  readonly interactions: Interactions;
  /** Ends with the platform. */
  readonly signal: AbortSignal;
}

const PAGE = 100;
/** What was said longer ago than this nobody waits for. */
const OLDEST_MS = 24 * 3_600_000;
/** Clocks of Discord's servers differ a little. */
const MARGIN_MS = 60_000;
/** A message that was changed longer ago comes up again for another reason, as a pin. */
const OLDEST_CHANGE_MS = 3_600_000;
const JUST_JOINED_MS = 3_600_000;
/** So many channels are asked for what was missed at the same time. */
const ASKED_AT_ONCE = 4;
const ASK_AGAIN_MS = 1000;
const NOBODY_KNOWS_MS = 60_000;
const MOST_UNKNOWN = 1000;

/** Brings what people say to the inbox: one at a time per channel, in order, until it is taken. */
export class Reception {
  readonly #deps: ReceptionDeps;
  readonly #directory = new ChannelDirectory();
  readonly #queues = new ChatQueues();
  readonly #asking = new ChatQueues();
  /** Channels that Discord does not show us, and until when that is believed. */
  readonly #unknown = new Recent<number>(MOST_UNKNOWN);
  readonly #roles = new OwnRoles((route) => this.#ask(route, {}));
  /** Servers that were there when the session began, and are still to be told of. */
  #expected = new Set<string>();
  /** Before that nothing is missing; null where there was nothing before, so that nothing can be. */
  #since: string | null = null;

  constructor(deps: ReceptionDeps) {
    this.#deps = deps;
  }

  /** A session begins anew: what was said since `completeAt` is asked for. Resolves when all before it is durable. */
  async begin(self: Self, guilds: readonly string[], completeAt: number | null): Promise<void> {
    const { marks, api } = this.#deps;
    const oldest = api.runtime.now() - OLDEST_MS;
    if (completeAt !== null && completeAt < oldest) {
      api.runtime.warn('what was said on Discord while nobody was there is asked for a day back only', { completeAt });
    }
    this.#since = completeAt === null ? null : snowflakeAt(Math.max(completeAt - MARGIN_MS, oldest));
    this.#expected = new Set(guilds);
    const before = this.#queues.settle();
    const known = marks.all().map(({ channel, message }) => this.#backfill(channel, message, self));
    await Promise.all([before, ...known]);
  }

  /** Resolves when the inbox has it, or never will; rejects when the platform was stopped before. */
  async take(type: string, data: Fields, self: Self): Promise<void> {
    switch (type) {
      case 'INTERACTION_CREATE':
        return await this.#takeInteraction(data, self);
      case 'GUILD_CREATE':
        return await this.#takeGuild(data, self);
      case 'GUILD_DELETE':
        return await this.#leaveGuild(data);
      case 'MESSAGE_CREATE':
      case 'MESSAGE_UPDATE':
        return await this.#takeMessage(data, self, type === 'MESSAGE_CREATE');
      default:
        return await this.#takeEvents(type, data, self);
    }
  }

  /** Lets the inbox finish what it has. */
  async settle(): Promise<void> {
    await this.#queues.settle();
    await this.#deps.interactions.settle();
  }

  async #takeMessage(fields: Fields, self: Self, fresh: boolean): Promise<void> {
    const lane = snowflakeOf(fields.channel_id);
    if (lane === null) return;
    await this.#queues.run(lane, () => this.#handMessage(fields, self, fresh));
  }

  async #handMessage(fields: Fields, self: Self, fresh: boolean): Promise<void> {
    const { api, inbox, marks } = this.#deps;
    const id = snowflakeOf(fields.id);
    const channel = await this.#channelOf(fields);
    if (id === null || channel === null) return;
    const parsed = parseMessage(fields, channel, await this.#roles.among(self, fields, channel.guild), fresh);
    const mark = { channel: channel.id, guild: channel.guild, message: id };
    if (parsed?.kind === 'message') {
      const { message } = parsed;
      if (message.edited && message.at < api.runtime.now() - OLDEST_CHANGE_MS) return;
      if (fresh) await marks.begin({ ...mark, message: String(BigInt(id) - 1n) });
      await this.#persist(() => inbox.receive(message));
    } else if (parsed?.kind === 'event') {
      const { event } = parsed;
      await this.#persist(() => inbox.happened(event));
    }
    if (fresh && marks.find(channel.id) !== null) marks.note(mark);
  }

  async #takeInteraction(fields: Fields, self: Self): Promise<void> {
    const { inbox, interactions } = this.#deps;
    const parsed = parseInteraction(fields, (id) => this.#directory.find(id), this.#deps.api.runtime.now());
    if (parsed === null || parsed.kind === 'message' || parsed.kind === 'event') return;
    const { interaction } = parsed;
    // Before anything else: Discord takes it for three seconds only, however long the inbox needs.
    const acknowledged = interactions.acknowledge(interaction, parsed.kind, self.application);
    if (parsed.kind === 'press') {
      const { press } = parsed;
      await this.#queues.run(`press:${press.messageId}`, async () => {
        let shown: string | null = null;
        await this.#persist(async () => {
          shown = await inbox.press(press);
        });
        interactions.show(interaction, acknowledged, shown, self.application);
      });
      return;
    }
    const { message } = parsed;
    await this.#queues.run(message.place.thread ?? message.place.chat, async () => {
      // An answer that came before it would find nothing to take the place of.
      await acknowledged;
      const unanswered = () => interactions.withdraw(interaction, self.application);
      await this.#persist(() => inbox.receive(message, unanswered));
    });
  }

  async #takeEvents(type: string, fields: Fields, self: Self): Promise<void> {
    this.#learn(type, fields);
    const lane = snowflakeOf(fields.channel_id) ?? snowflakeOf(fields.id) ?? snowflakeOf(fields.guild_id);
    if (lane === null) return;
    await this.#queues.run(lane, async () => {
      if (/^MESSAGE_/.test(type)) await this.#channelOf(fields);
      for (const event of parseEvents(type, fields, this.#directory, self)) await this.#hand(event);
      if (type === 'CHANNEL_DELETE' || type === 'THREAD_DELETE') this.#forget(lane);
    });
  }

  #learn(type: string, fields: Fields): void {
    const channel = /^(?:CHANNEL|THREAD)_(?:CREATE|UPDATE)$/.test(type) ? channelOf(fields) : null;
    if (channel !== null) this.#directory.note(channel);
    if (type !== 'THREAD_LIST_SYNC') return;
    for (const each of listOf(fields.threads)) {
      const thread = channelOf(each, snowflakeOf(fields.guild_id));
      if (thread !== null) this.#directory.note(thread);
    }
  }

  #forget(channel: string): void {
    this.#directory.forget(channel);
    this.#deps.marks.forget(channel);
  }

  /** A server: at the beginning of a session what was missed in it is asked for, later it is a new one. */
  async #takeGuild(fields: Fields, self: Self): Promise<void> {
    const { inbox, api } = this.#deps;
    const guild = snowflakeOf(fields.id);
    if (guild === null) return;
    const channels = this.#directory.noteGuild(fields);
    if (!this.#expected.delete(guild)) {
      const joined = Date.parse(textOf(fields.joined_at, 64) ?? '');
      if (!(joined > api.runtime.now() - JUST_JOINED_MS)) return;
      const home = this.#directory.homeOf(guild);
      const place = home === null ? null : placeOf(home);
      if (place !== null) await this.#queues.run(place.chat, () => this.#hand({ kind: 'added', place }));
      return inbox.changed();
    }
    const since = this.#since;
    if (since === null) return;
    const told = channels.map((channel) => this.#backfillUnknown(channel, since, self));
    const listed = new Set(channels.map(({ id }) => id));
    const active = fieldsOf(await this.#ask(`/guilds/${guild}/threads/active`, {}));
    const threads = listOf(active?.threads).flatMap((each) => channelOf(each, guild) ?? []);
    const others = threads.filter(({ id }) => !listed.has(id));
    for (const thread of others) this.#directory.note(thread);
    await Promise.all([...told, ...others.map((thread) => this.#backfillUnknown(thread, since, self))]);
  }

  async #leaveGuild(fields: Fields): Promise<void> {
    const guild = snowflakeOf(fields.id);
    // That is an outage at Discord.
    if (guild === null || fields.unavailable === true) return;
    const places = this.#directory.ofGuild(guild).flatMap((channel) => placeOf(channel) ?? []);
    this.#directory.forgetGuild(guild);
    for (const { channel } of this.#deps.marks.of(guild)) this.#deps.marks.forget(channel);
    const removed = places.map((place): PlatformEvent => {
      return { kind: 'removed', place, reason: 'the bot was removed from the server' };
    });
    for (const event of removed) {
      await this.#queues.run(event.place.thread ?? event.place.chat, () => this.#hand(event));
    }
  }

  async #hand(event: PlatformEvent): Promise<void> {
    await this.#persist(() => this.#deps.inbox.happened(event));
  }

  /** Those that are known have been asked when the session began, also threads that were archived meanwhile. */
  async #backfillUnknown({ id, last }: Channel, since: string, self: Self): Promise<void> {
    const isBehind = last !== null && compareIds(last, since) > 0;
    if (isBehind && this.#deps.marks.find(id) === null) await this.#backfill(id, since, self);
  }

  /** Asks for what was said behind a message, and takes it before all that comes now. */
  async #backfill(channel: string, mark: string, self: Self): Promise<void> {
    const oldest = snowflakeAt(this.#deps.api.runtime.now() - OLDEST_MS);
    await this.#queues.run(channel, async () => {
      for (let after = holdsTime(mark) ? laterOf(mark, oldest) : mark; ; ) {
        const page = await this.#asking.run(`${BigInt(channel) % BigInt(ASKED_AT_ONCE)}`, () =>
          this.#ask(`/channels/${channel}/messages`, { after, limit: String(PAGE) }),
        );
        // It is gone, or not for us any more.
        if (page === null) return this.#deps.marks.forget(channel);
        const messages = listOf(page).flatMap((each) => {
          const fields = fieldsOf(each);
          const id = snowflakeOf(fields?.id);
          return fields === null || id === null ? [] : [{ fields, id }];
        });
        messages.sort((a, b) => compareIds(a.id, b.id));
        for (const { fields } of messages) {
          const guild = this.#deps.marks.find(channel)?.guild ?? this.#directory.find(channel)?.guild;
          await this.#handMessage({ ...fields, channel_id: channel, guild_id: guild }, self, true);
        }
        const last = messages.at(-1)?.id;
        if (last === undefined || messages.length < PAGE || compareIds(last, after) <= 0) break;
        after = last;
      }
    });
  }

  async #channelOf(fields: Fields): Promise<Channel | null> {
    const known = channelIn(fields, (id) => this.#directory.find(id));
    const id = snowflakeOf(fields.channel_id);
    if (known !== null || id === null) return known;
    const { runtime } = this.#deps.api;
    if ((this.#unknown.get(id) ?? 0) <= runtime.now()) {
      const channel = channelOf(await this.#ask(`/channels/${id}`, {}));
      if (channel !== null) {
        this.#directory.note(channel);
        return channel;
      }
      this.#unknown.set(id, runtime.now() + NOBODY_KNOWS_MS);
    }
    // Something was said there, so it is one.
    return channelOf({ id, type: 0 }, snowflakeOf(fields.guild_id));
  }

  /** Asks until there is an answer; null where Discord refuses for good. */
  async #ask(route: `/${string}`, query: Record<string, string>): Promise<unknown> {
    const { api, signal } = this.#deps;
    for (let wait = ASK_AGAIN_MS; ; wait = Math.min(wait * 2, 60_000)) {
      signal.throwIfAborted();
      try {
        return await api.raw('GET', route, { query }, signal);
      } catch (thrown) {
        signal.throwIfAborted();
        const { retryAfterMs } = sendFailureOf(thrown, api.redact);
        if (retryAfterMs === null) return null;
        await pause(api.runtime, Math.max(wait, retryAfterMs), signal);
      }
    }
  }

  /** Tries until the inbox has it. Rejects when the platform is stopped: then the session brings it again. */
  async #persist(work: () => Promise<void>): Promise<void> {
    const { api, connection, signal } = this.#deps;
    for (;;) {
      signal.throwIfAborted();
      try {
        await work();
        connection.taken();
        return;
      } catch (thrown) {
        api.runtime.warn('a message was not taken and will be brought again', { error: String(thrown) });
        await connection.untaken(signal);
      }
    }
  }
}
