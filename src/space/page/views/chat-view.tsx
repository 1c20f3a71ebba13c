import { computed } from '@preact/signals';
import { useMemo, useState } from 'preact/hooks';
import { Chat } from '../chat/chat.tsx';
import { useSpace } from '../context.ts';
import { plainLine } from '../data/plain-text.ts';
import { nameOf } from '../data/rooms.ts';
import type { Source } from '../data/source.ts';
import type { World } from '../data/world.ts';
import { ViewFrame } from './parts.tsx';

/** The web chat, with one of the gateways. */
export function ChatView() {
  const { world } = useSpace();
  void world.calm.value;
  const [chosen, setChosen] = useState<string | null>(null);
  const sources = world.sources;
  const { source } = sources.find((one) => one.source.id === chosen) ?? sources[0] ?? { source: null };
  return (
    <ViewFrame name="chat-view" title="Chat">
      {sources.length > 1 && (
        <div class="view-head">
          <label class="field">
            With gateway{' '}
            <select value={source?.id} onChange={(event) => setChosen(event.currentTarget.value)}>
              {sources.map((one) => (
                <option key={one.source.id} value={one.source.id}>
                  {plainLine(nameOf(one))}
                </option>
              ))}
            </select>
          </label>
        </div>
      )}
      {source === null ? (
        <p class="empty">No gateway yet.</p>
      ) : (
        <FollowedChat key={source.id} source={source} world={world} />
      )}
    </ViewFrame>
  );
}

/** Looks again as soon as something was said in the web conversations of its gateway, in another window for one. */
function FollowedChat({ source, world }: { source: Source; world: World }) {
  const changes = useMemo(() => computed(() => saidIn(world, source)), [source, world]);
  return <Chat source={source} changes={changes} />;
}

function saidIn(world: World, source: Source): string {
  void world.calm.value;
  let [sessions, messages] = [0, 0];
  for (const { view, source: from } of world.sessions.values()) {
    if (from !== source || view.platform !== 'web') continue;
    sessions += 1;
    messages += view.message_count;
  }
  return `${sessions} with ${messages}`;
}
