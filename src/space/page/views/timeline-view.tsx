import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { sentenceOf } from '../data/answer-error.ts';
import { nameOf } from '../data/rooms.ts';
import { oneOfEachStore } from '../data/stores.ts';
import {
  askTimeline,
  countsOf,
  RANGES,
  type Range,
  reasonsOf,
  STARTED,
  type Timeline,
  total,
} from '../data/timeline.ts';
import type { World } from '../data/world.ts';
import { theme } from '../ui.ts';
import type { Chart } from './chart.ts';
import { PlainText, Trouble } from './parts.tsx';

const REFRESH_MS = 4_000;
const FIRST_RANGE: Range = RANGES[0] ?? { id: '1h', words: '1 h', seconds: 3_600, step: 60 };

/** Who started and who ended, and why, over time. */
export function TimelineView() {
  const { world } = useSpace();
  const [range, setRange] = useState(FIRST_RANGE);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const { timeline, trouble, missing } = useTimeline(world, range);
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  return (
    <section class="view timeline-view" aria-labelledby="view-title">
      <div class="view-head">
        <h1 id="view-title">Timeline</h1>
        <fieldset class="choice">
          <legend class="hidden">How far back</legend>
          {RANGES.map((one) => (
            <button key={one.id} type="button" aria-pressed={one.id === range.id} onClick={() => setRange(one)}>
              {one.words}
            </button>
          ))}
        </fieldset>
      </div>
      <Trouble text={trouble} />
      {missing.length > 0 && <p class="notice">Without {missing.join(', ')}: not heard at the moment.</p>}
      {timeline !== null && (
        <>
          <ChartFrame timeline={timeline} hidden={hidden} />
          <ChartLegend timeline={timeline} hidden={hidden} onToggle={toggle} />
          <TimelineTable timeline={timeline} />
        </>
      )}
    </section>
  );
}

function useTimeline(world: World, range: Range) {
  const [timeline, setTimeline] = useState<Timeline | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [missing, setMissing] = useState<readonly string[]>([]);
  const ready = world.calm.value > 0 && world.sources.some(({ state }) => state === 'live');
  useEffect(() => {
    let wanted = true;
    const ask = async (): Promise<void> => {
      const stores = oneOfEachStore(world.sources);
      const live = stores.filter(({ state }) => state === 'live').map(({ source }) => source);
      try {
        const answer = await askTimeline(live, range, Date.now());
        if (!wanted) return;
        setTimeline(answer);
        setTrouble(null);
        setMissing(stores.filter(({ state }) => state !== 'live').map(nameOf));
      } catch (thrown) {
        if (wanted) setTrouble(sentenceOf(thrown));
      }
    };
    void ask();
    const timer = setInterval(() => document.hidden || void ask(), REFRESH_MS);
    return () => {
      wanted = false;
      clearInterval(timer);
    };
  }, [range, ready]);
  return { timeline, trouble, missing };
}

interface FrameProps {
  readonly timeline: Timeline;
  readonly hidden: ReadonlySet<string>;
}

function ChartFrame({ timeline, hidden }: FrameProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [chart, setChart] = useState<Chart | null>(null);
  const [readout, setReadout] = useState('');
  const mode = `${theme.value} ${useDarkness()}`;
  useEffect(() => {
    let made: Chart | null = null;
    let wanted = true;
    // Loaded when it is looked at: most of what this page weighs.
    void import('./chart.ts').then(({ makeChart }) => {
      if (!wanted || frame.current === null) return;
      made = makeChart(frame.current, setReadout);
      setChart(made);
    });
    return () => {
      wanted = false;
      made?.dispose();
    };
  }, [mode]);
  useEffect(() => chart?.show(timeline, hidden), [chart, timeline, hidden]);
  return (
    <figure class="chart">
      <div ref={frame} class="chart-frame" />
      <figcaption class="readout">
        {readout === '' ? 'Bars: sessions that ended, by reason. Line: sessions that started.' : readout}
      </figcaption>
    </figure>
  );
}

/** Whether the system is dark: a canvas does not change its colours by itself. */
function useDarkness(): boolean {
  const query = useMemo(() => matchMedia('(prefers-color-scheme: dark)'), []);
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const read = (): void => setDark(query.matches);
    query.addEventListener('change', read);
    return () => query.removeEventListener('change', read);
  }, [query]);
  return dark;
}

function ChartLegend({ timeline, hidden, onToggle }: FrameProps & { onToggle: (name: string) => void }) {
  const reasons = reasonsOf(timeline);
  const names = [STARTED, ...reasons];
  return (
    <ul class="chart-legend" aria-label="What is shown">
      {names.map((name, index) => (
        <li key={name}>
          <button type="button" aria-pressed={!hidden.has(name)} data-series={name} onClick={() => onToggle(name)}>
            <span
              class="swatch"
              data-colour={index === 0 ? 'line' : (index - 1) % 8}
              data-hatched={index > 8}
              aria-hidden="true"
            />
            <PlainText text={name} />
            <strong>{total(countsOf(timeline, name)).toLocaleString()}</strong>
          </button>
        </li>
      ))}
    </ul>
  );
}

function TimelineTable({ timeline }: { timeline: Timeline }) {
  const names = [STARTED, ...reasonsOf(timeline)];
  const busy = [...timeline.slots.keys()].filter((slot) =>
    names.some((name) => (countsOf(timeline, name)[slot] ?? 0) > 0),
  );
  return (
    <details class="as-table">
      <summary>The same as a table</summary>
      {busy.length === 0 ? (
        <p class="empty">Nothing has happened in this time.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        <section class="scroll" tabIndex={0} aria-label="Starts and ends as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">from</th>
                {names.map((name) => (
                  <th key={name} scope="col">
                    <PlainText text={name} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {busy.reverse().map((slot) => (
                <tr key={slot}>
                  <th scope="row">{new Date((timeline.slots[slot] ?? 0) * 1000).toLocaleString()}</th>
                  {names.map((name) => (
                    <td key={name}>{countsOf(timeline, name)[slot] ?? 0}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </details>
  );
}
