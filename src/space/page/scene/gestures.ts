/** What a person does with the picture, in pixels of the canvas. */
export interface Gestures {
  hover(x: number, y: number): void;
  leave(): void;
  tap(x: number, y: number): void;
  /** Returns whether the picture moved; what it does not use belongs to the page. */
  drag(dx: number, dy: number): boolean;
  zoom(factor: number, x: number, y: number): boolean;
  reset(): void;
}

/** A hand is never quite still; further than this is a drag. */
const SLIP = 5;
const ZOOM_STEP = 1.4;

/** Listens to the canvas until the signal aborts. */
export function listen(canvas: HTMLCanvasElement, gestures: Gestures, signal: AbortSignal): void {
  const presses = new Map<number, { x: number; y: number; readonly startX: number; readonly startY: number }>();
  let dragged = false;

  const at = (event: MouseEvent): [number, number] => {
    const box = canvas.getBoundingClientRect();
    return [
      ((event.clientX - box.left) * canvas.width) / (box.width || 1),
      ((event.clientY - box.top) * canvas.height) / (box.height || 1),
    ];
  };
  const spread = (): number => {
    const [one, two] = [...presses.values()];
    return one === undefined || two === undefined ? 0 : Math.hypot(one.x - two.x, one.y - two.y);
  };
  const middle = (): [number, number] => {
    const all = [...presses.values()];
    return [
      all.reduce((sum, press) => sum + press.x, 0) / all.length,
      all.reduce((sum, press) => sum + press.y, 0) / all.length,
    ];
  };

  function move(event: PointerEvent): void {
    const [x, y] = at(event);
    const press = presses.get(event.pointerId);
    if (press === undefined) {
      if (event.pointerType !== 'touch') gestures.hover(x, y);
      return;
    }
    if (!dragged && Math.hypot(x - press.startX, y - press.startY) < SLIP) return;
    if (!dragged) {
      dragged = true;
      canvas.setPointerCapture(event.pointerId);
    }
    const before = spread();
    const [fromX, fromY] = middle();
    press.x = x;
    press.y = y;
    const [toX, toY] = middle();
    gestures.drag(toX - fromX, toY - fromY);
    if (before > 0) gestures.zoom(spread() / before, toX, toY);
  }

  function press(event: PointerEvent): void {
    if (event.button !== 0) return;
    const [x, y] = at(event);
    if (presses.size === 0) dragged = false;
    presses.set(event.pointerId, { x, y, startX: x, startY: y });
    // A second finger is never a tap.
    if (presses.size > 1) dragged = true;
  }

  function release(event: PointerEvent): void {
    const wasPressed = presses.delete(event.pointerId);
    if (wasPressed && !dragged && event.type === 'pointerup') gestures.tap(...at(event));
  }

  function wheel(event: WheelEvent): void {
    const lines = event.deltaMode === 0 ? event.deltaY / 40 : event.deltaY;
    if (gestures.zoom(Math.exp(Math.max(-3, Math.min(3, -lines)) * 0.12), ...at(event))) event.preventDefault();
  }

  function key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const centre = [canvas.width / 2, canvas.height / 2] as const;
    if (event.key === '0') gestures.reset();
    else if (event.key === '+') gestures.zoom(ZOOM_STEP, ...centre);
    else if (event.key === '-') gestures.zoom(1 / ZOOM_STEP, ...centre);
  }

  canvas.addEventListener('pointermove', move, { signal });
  canvas.addEventListener('pointerdown', press, { signal });
  canvas.addEventListener('pointerup', release, { signal });
  canvas.addEventListener('pointercancel', release, { signal });
  canvas.addEventListener('pointerleave', () => gestures.leave(), { signal });
  canvas.addEventListener('wheel', wheel, { signal, passive: false });
  canvas.addEventListener('dblclick', () => gestures.reset(), { signal });
  canvas.addEventListener('keydown', key, { signal });
}
