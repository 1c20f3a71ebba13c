import { computed, effect, type ReadonlySignal, signal } from '@preact/signals';

/** What the person does with the page: where they are, what they look at, how it looks. */

export const VIEWS = ['space', 'sessions', 'timeline', 'listeners', 'chat'] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  /** The session whose panel is open. */
  readonly session: string | null;
}

export const route = signal<Route>({ view: 'space', session: null });
/** Changes once a second, for what counts time. */
export const now = signal(Date.now());
/** What a screen reader says next. Important things only. */
export const announcement = signal('');
export const helpOpen = signal(false);

/** Whether a media query matches. */
export function mediaSignal(query: string): ReadonlySignal<boolean> {
  const list = matchMedia(query);
  const matches = signal(list.matches);
  list.addEventListener('change', () => {
    matches.value = list.matches;
  });
  return matches;
}

/** There is no space beside the view: the panel lies over it. */
export const narrow = mediaSignal('(max-width: 959px)');

/** Whether a person looks at the page, or did until a moment ago. */
export const watched = signal(true);
/** Looking away for less than this is looking. */
const GLANCE_MS = 20_000;

export type Theme = 'system' | 'light' | 'dark';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];
const THEME_NAME = 'moirai-theme';
export const theme = signal<Theme>('system');

export const selectedId = computed(() => route.value.session);
export const view = computed(() => route.value.view);

export function parseRoute(hash: string): Route {
  const [name = '', session = ''] = hash.replace(/^#/, '').split('/');
  const known = VIEWS.find((one) => one === name) ?? 'space';
  return { view: known, session: session === '' ? null : decode(session) };
}

export function hashOf({ view: name, session }: Route): string {
  return session === null ? `#${name}` : `#${name}/${encodeURIComponent(session)}`;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null; // Somebody typed an address by hand: there is no such session.
  }
}

export function goTo(name: View): void {
  location.hash = hashOf({ view: name, session: null });
}

export function openSession(id: string): void {
  location.hash = hashOf({ view: view.value, session: id });
}

export function closeSession(): void {
  if (route.value.session !== null) location.hash = hashOf({ view: view.value, session: null });
}

export function announce(text: string): void {
  announcement.value = text;
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system';
}

/** Ties the signals to the browser. */
export function startUi(): void {
  const read = (): void => {
    route.value = parseRoute(location.hash);
  };
  addEventListener('hashchange', read);
  read();
  setInterval(() => {
    now.value = Date.now();
  }, 1000);
  watchTheWatcher();
  const remembered = localStorage.getItem(THEME_NAME);
  theme.value = THEMES.find((one) => one === remembered) ?? 'system';
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    localStorage.setItem(THEME_NAME, theme.value);
  });
}

function watchTheWatcher(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (!document.hidden) watched.value = true;
    else
      timer = setTimeout(() => {
        watched.value = false;
      }, GLANCE_MS);
  });
}
