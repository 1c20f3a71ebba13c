import { useSpace } from '../context.ts';
import { countAll } from '../data/stores.ts';
import { PHASES } from '../protocol.ts';
import { goTo, helpOpen, nextTheme, theme, VIEWS, view } from '../ui.ts';
import { GatewayChips } from './gateway-chips.tsx';
import { Button, PHASE_WORDS, PhaseDot, PlainText } from './parts.tsx';

export function Header({ inert }: { inert: boolean }) {
  const { ring } = useSpace();
  const forgetKey = (): void => {
    ring.forget();
    // What the key has shown goes with it.
    location.reload();
  };
  return (
    <header inert={inert}>
      <div class="top">
        <a class="brand" href="#space">
          <Spool />
          <span>Moirai</span>
        </a>
        <Leaks />
        <div class="tools">
          {ring.known.value && (
            <Button class="quiet" onClick={forgetKey} title="Forget the key">
              <Icon path="M7 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM9.5 9.5L16 16M13.5 13.5l2-2" />
              <span class="hidden">Forget the key</span>
            </Button>
          )}
          <Button class="quiet" onClick={nextTheme} title={`Theme: ${theme.value}`} data-action="theme">
            <Icon path={THEME_ICONS[theme.value]} />
            <span class="hidden">Theme: {theme.value}. Change it</span>
          </Button>
          <Button class="quiet" title="Keyboard shortcuts (?)" onClick={() => (helpOpen.value = true)}>
            <Icon path="M7 7.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M9.5 14.5h.01" />
            <span class="hidden">Help</span>
          </Button>
        </div>
        <Tabs />
      </div>
      <div class="strip">
        <PhaseCounts />
        <GatewayChips />
      </div>
    </header>
  );
}

function Tabs() {
  const { chat } = useSpace();
  return (
    <nav class="tabs" aria-label="Views">
      {VIEWS.filter((name) => name !== 'chat' || chat.value).map((name) => (
        <a key={name} href={`#${name}`} aria-current={view.value === name ? 'page' : undefined}>
          <Icon path={TABS[name][1]} />
          <span>{TABS[name][0]}</span>
        </a>
      ))}
    </nav>
  );
}

const TABS = {
  space: ['Space', 'M3 8l7-5 7 5v9H3zM8 17v-5h4v5'],
  sessions: ['Sessions', 'M3 5h14M3 10h14M3 15h14'],
  timeline: ['Timeline', 'M3 17V3M3 17h14M7 17v-5M11 17V7M15 17v-8'],
  listeners: ['Listeners', 'M5 8a5 5 0 0 1 10 0c0 3-3 3.5-3 6.5a2.5 2.5 0 0 1-5 0M8 8a2 2 0 0 1 4 0'],
  chat: ['Chat', 'M3 4h14v9h-7l-4 4v-4H3z'],
} as const;

/** The count that must be 0. */
function Leaks() {
  const { world } = useSpace();
  void world.calm.value;
  const { unowned, unheard } = countAll(world.sources);
  const started = world.sources.some(({ heardAt }) => heardAt !== null);
  const unsure = !started || unheard.length > 0;
  const state = unowned > 0 ? 'alarm' : unsure ? 'unsure' : 'calm';
  const note =
    unheard.length > 0
      ? `not counted now: ${unheard.join(', ')}`
      : 'every open session has a live owner or rests in the store';
  return (
    <Button class="leaks" data-state={state} data-unowned={unowned} title={note} onClick={() => goTo('sessions')}>
      <span class="leaks-mark" aria-hidden="true" />
      <span class="leaks-words">open sessions without a live owner:</span>
      <strong>{started ? unowned.toLocaleString() : '–'}</strong>
      {started && unsure && <span class="faint">({unheard.length.toLocaleString()} not heard)</span>}
    </Button>
  );
}

/** How many sessions are in which phase. */
function PhaseCounts() {
  const { world } = useSpace();
  void world.calm.value;
  const counts = new Map<string, number>(PHASES.map((phase) => [phase, 0]));
  let grey = 0;
  for (const { view: seen, live } of world.sessions.values()) {
    // What a session did when it was last heard of is not what it does.
    if (live) counts.set(seen.phase, (counts.get(seen.phase) ?? 0) + 1);
    else grey++;
  }
  const { open } = countAll(world.sources);
  const shown = world.sessions.size;
  return (
    <ul class="counts" aria-label="Open sessions by phase" data-shown={shown}>
      <li class="total">
        <strong>{shown.toLocaleString()}</strong> open
        {open > shown && <span class="faint"> of {open.toLocaleString()}</span>}
      </li>
      {[...counts].map(([phase, count]) => (
        <li key={phase} data-phase={phase} data-count={count} class={count === 0 ? 'zero' : undefined}>
          <PhaseDot phase={phase} />
          <strong>{count.toLocaleString()}</strong> <PlainText text={PHASE_WORDS[phase] ?? phase} />
        </li>
      ))}
      {grey > 0 && (
        <li class="zero" data-phase="grey" data-count={grey}>
          <strong>{grey.toLocaleString()}</strong> last known
        </li>
      )}
    </ul>
  );
}

const THEME_ICONS = {
  system: 'M3 4h14v9H3zM7.5 16.5h5M10 13v3.5',
  light:
    'M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.5 4.5l1 1M14.5 14.5l1 1M15.5 4.5l-1 1M5.5 14.5l-1 1',
  dark: 'M15.5 12A6.5 6.5 0 0 1 8 4.5a6.5 6.5 0 1 0 7.5 7.5z',
};

function Icon({ path }: { path: string }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

function Spool() {
  return (
    <svg class="spool" viewBox="0 0 32 32" aria-hidden="true">
      <path class="spool-ends" d="M8 6h16M8 26h16" />
      <path class="spool-thread" d="M11 10h10M10 14h12M10 18h12M11 22h10" />
    </svg>
  );
}
