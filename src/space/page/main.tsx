import { render } from 'preact';
import { App } from './app.tsx';
import { KeyRing } from './data/key-ring.ts';
import { Space } from './data/space.ts';
import { startUi, watched } from './ui.ts';

/** Browsers give a hidden page no frames; it still has to keep up. */
function nextFrame(show: () => void): void {
  if (document.hidden) setTimeout(show, 1000);
  else requestAnimationFrame(show);
}

const place = document.getElementById('app');
if (place !== null) {
  const ring = new KeyRing(sessionStorage, localStorage);
  const space = new Space({ ring, fetcher: (url, init) => fetch(url, init), watched, frame: nextFrame });
  startUi();
  render(<App space={space} />, place);
  void space.run(new AbortController().signal);
}
