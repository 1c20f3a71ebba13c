import type { Mutant } from '../../mutants/mutants.ts';

const SYNCING = 'test/platforms/matrix/syncing.test.ts';
const ROOMS = 'test/platforms/matrix/rooms.test.ts';

/** Bugs in what only Matrix promises. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a sync counts as taken although a room of it is not',
    file: 'src/platforms/matrix/reception.ts',
    find: 'void Promise.all(work).then(',
    replace: 'void Promise.all(work.slice(1)).then(',
    layer: { file: SYNCING, titles: 'waits for a room that is slow' },
  },
  {
    name: 'a gap is taken page by page as the server gives it',
    file: 'src/platforms/matrix/gap.ts',
    find: 'for (let page = pages.pop(); page !== undefined; page = pages.pop()) {',
    replace: 'for (let page = pages.shift(); page !== undefined; page = pages.shift()) {',
    layer: { file: SYNCING, titles: 'of 1,000 events is fetched backwards' },
  },
  {
    name: 'a reply is sent into an encrypted room in the clear',
    file: 'src/platforms/matrix/send.ts',
    find: 'if (!(await this.#deps.rooms.isEncrypted(room))) return room;',
    replace: 'if (room !== place.thread) return room;',
    layer: { file: ROOMS, titles: 'is not talked in' },
  },
  {
    name: 'a room goes on as whatever room its owner names',
    file: 'src/platforms/matrix/membership.ts',
    find: "if (predecessorIn(await this.#stateOf(to, 'm.room.create')) !== from) {",
    replace: 'if (from === to) {',
    layer: { file: ROOMS, titles: 'is not followed into' },
  },
  {
    name: 'a room of Matrix that only says so takes the place of another one',
    file: 'src/platforms/matrix/membership.ts',
    find: 'if (from === null || !(await this.#goesOnAs(from, room))) return null;',
    replace: 'if (from === null) return null;',
    layer: { file: ROOMS, titles: 'only says so' },
  },
  {
    name: 'a direct chat of Matrix is taken for a group while the server is away',
    file: 'src/platforms/matrix/rooms.ts',
    find: 'const answer = await this.#api.find(',
    replace: 'const answer = await this.#api.lookUp(',
    layer: { file: ROOMS, titles: 'is asked until the server says it' },
  },
  {
    name: 'a gap of Matrix is left out because the token was not taken',
    file: 'src/platforms/matrix/api.ts',
    find: 'return !this.mayPass && this.status !== 401;',
    replace: 'return !this.mayPass;',
    layer: { file: SYNCING, titles: 'the token was not taken for a while' },
  },
  {
    name: 'an invite of Matrix is forgotten with the process that could not answer it yet',
    file: 'src/platforms/matrix/reception.ts',
    find: 'await this.#retryUntilTaken(() => pending.add(coming),',
    replace: 'await this.#retryUntilTaken(async () => undefined,',
    layer: { file: ROOMS, titles: 'answered by the next process' },
  },
  {
    name: 'everybody waits for a room that nobody can come into',
    file: 'src/platforms/matrix/reception.ts',
    find: 'await Promise.race([whole, pause(',
    replace: 'await Promise.all([whole, pause(',
    layer: { file: ROOMS, titles: 'keeps nobody else waiting' },
  },
];
