import { computed, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { SpaceProvider } from './context.ts';
import { nameOf } from './data/rooms.ts';
import type { Space } from './data/space.ts';
import { countAll } from './data/stores.ts';
import { announce, announcement, closeSession, goTo, helpOpen, narrow, selectedId, VIEWS, view } from './ui.ts';
import { ChatView } from './views/chat-view.tsx';
import { Header } from './views/header.tsx';
import { HelpDialog } from './views/help-dialog.tsx';
import { KeyDialog } from './views/key-dialog.tsx';
import { ListenersView } from './views/listeners-view.tsx';
import { Panel } from './views/panel.tsx';
import { Button } from './views/parts.tsx';
import { SessionsView } from './views/sessions-view.tsx';
import { SpaceView } from './views/space-view.tsx';
import { TimelineView } from './views/timeline-view.tsx';

/** The whole page. */
export function App({ space }: { space: Space }) {
  useShortcuts();
  useNews(space);
  const main = useRef<HTMLElement>(null);
  const CurrentView = COMPONENTS[view.value];
  return (
    <SpaceProvider value={space}>
      <Button class="skip" onClick={() => main.current?.focus()}>
        Skip to the view
      </Button>
      <Header inert={covered.value} />
      <div class={selectedId.value === null ? 'stage' : 'stage with-panel'}>
        <main id="main" ref={main} tabIndex={-1} data-view={view.value} inert={covered.value}>
          <CurrentView />
        </main>
        {selectedId.value !== null && <Panel key={selectedId.value} id={selectedId.value} />}
      </div>
      <div class="hidden" role="status" aria-live="polite">
        {announcement.value}
      </div>
      {helpOpen.value && <HelpDialog />}
      <KeyDialog />
    </SpaceProvider>
  );
}

/** What lies under the panel is out of reach, not only out of sight. */
const covered = computed(() => narrow.value && selectedId.value !== null);

const COMPONENTS = {
  space: SpaceView,
  sessions: SessionsView,
  timeline: TimelineView,
  listeners: ListenersView,
  chat: ChatView,
};

function useShortcuts(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      if (document.querySelector('dialog[open]') !== null) return;
      const name = VIEWS[Number(event.key) - 1];
      if (name !== undefined) goTo(name);
      else if (event.key === '?') helpOpen.value = true;
      else if (event.key === 'Escape') closeSession();
      else if (event.key === '/') openSearch(event);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable]') !== null;
}

function openSearch(event: Event): void {
  event.preventDefault();
  if (view.value !== 'sessions') goTo('sessions');
  // The view is drawn first.
  setTimeout(() => document.getElementById('search')?.focus(), 50);
}

/** Announces to screen readers: a source that goes or comes back, a session without an owner. */
function useNews({ world }: Space): void {
  const before = useRef({ states: new Map<string, string>(), unowned: 0 });
  useSignalEffect(() => {
    void world.calm.value;
    const { states } = before.current;
    for (const one of world.sources) {
      const { source, state, why } = one;
      const was = states.get(source.id);
      states.set(source.id, state);
      if (was === 'live' && state === 'gone') announce(`${nameOf(one)} is not heard any more: ${why}`);
      if (was === 'gone' && state === 'live') announce(`${nameOf(one)} is heard again`);
    }
    const { unowned } = countAll(world.sources);
    if (unowned > before.current.unowned) announce(`${unowned} open sessions without a live owner`);
    before.current.unowned = unowned;
  });
}
