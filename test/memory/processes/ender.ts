/** Ends a session, and is killed while its memory is still at work on that. */
import { join } from 'node:path';
import { Scene } from '../scene.ts';

const scene = await Scene.onFile(join(process.argv[2] ?? '', 'state.db'));
await scene.remember([{ name: 'recorder', onSessionEnd: () => new Promise(() => undefined) }]);
const id = await scene.talk('hello');
await scene.engine.end(id, { reason: 'admin_close', trigger: 'api' });
console.log(id);
setInterval(() => undefined, 1000);
