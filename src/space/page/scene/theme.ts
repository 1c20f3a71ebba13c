const LIGHT = {
  floor: '#f3efe6',
  wall: '#ddd5c7',
  text: '#2b2536',
  muted: '#655d70',
  accent: '#7a4fd0',
};
export type Theme = Readonly<typeof LIGHT>;

const DARK: Theme = {
  floor: '#211e2e',
  wall: '#12101b',
  text: '#efeaf8',
  muted: '#a89fb8',
  accent: '#c4a8ff',
};

const darkness = (): MediaQueryList => matchMedia('(prefers-color-scheme: dark)');

/** The colours of the page: its own word, else what the person asked of it, else of their system. */
export function readTheme(canvas: HTMLCanvasElement): Theme {
  const asked = document.documentElement.dataset.theme;
  const dark = asked === 'dark' || (asked !== 'light' && darkness().matches);
  const style = getComputedStyle(canvas);
  const theme = { ...(dark ? DARK : LIGHT) };
  for (const name of Object.keys(theme) as (keyof Theme)[]) {
    const colour = style.getPropertyValue(`--scene-${name}`).trim();
    if (colour !== '') theme[name] = colour;
  }
  return theme;
}

/** Calls when colours may be others, until the signal aborts. */
export function watchTheme(changed: () => void, signal: AbortSignal): void {
  darkness().addEventListener('change', changed, { signal });
  const page = new MutationObserver(changed);
  page.observe(document.documentElement, { attributeFilter: ['data-theme', 'class', 'style'] });
  signal.addEventListener('abort', () => page.disconnect());
}
