import { DEFAULT_RESET_RULES } from '../src/lifecycle/reset-policy.ts';
import { openStore } from '../src/store/open-store.ts';

/** Opens the store that the first argument names, asks what a gateway asks at its start, and says what that took. */
const began = performance.now();
const store = await openStore(process.argv[2] ?? '', '', DEFAULT_RESET_RULES);
await store.read('nextDeadline', {});
await store.read('unfinishedTurns', { limit: 100 });
const ms = performance.now() - began;
const residentMb = process.memoryUsage().rss / 1024 / 1024;
await store.close();
process.stdout.write(JSON.stringify({ ms, residentMb }));
