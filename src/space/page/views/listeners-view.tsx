import { useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { nameOf } from '../data/rooms.ts';
import { askJson, postJson, type Source } from '../data/source.ts';
import { oneOfEachStore } from '../data/stores.ts';
import { announce } from '../ui.ts';
import { useAttempt, usePolled } from './asking.ts';
import { Dialog } from './dialog.tsx';
import { Ago, Button, PlainText, plural, Trouble } from './parts.tsx';

interface Subscriber {
  readonly name: string;
  readonly events: readonly string[];
  readonly position: number;
  readonly lag: number;
  readonly oldest_pending_at: string | null;
  readonly failures: number;
  readonly dead_letters: number;
  readonly last_error: string | null;
}

const POLL_MS = 3_000;

/** Who listens to the log, and how far they are. */
export function ListenersView() {
  const { world } = useSpace();
  void world.calm.value;
  // Listeners of one store are the same, whichever gateway is asked.
  const sources = oneOfEachStore(world.sources);
  return (
    <section class="view listeners-view" aria-labelledby="view-title">
      <div class="view-head">
        <h1 id="view-title">Listeners</h1>
        <p class="faint">Those who are told of every event, and how far behind they are.</p>
      </div>
      {sources.map((one) => (
        <SourceListeners key={one.source.id} source={one.source} title={sources.length > 1 ? nameOf(one) : null} />
      ))}
    </section>
  );
}

function SourceListeners({ source, title }: { source: Source; title: string | null }) {
  const [replaying, setReplaying] = useState<Subscriber | null>(null);
  const [replays, setReplays] = useState(0);
  const ask = () => askJson<{ data: readonly Subscriber[] }>(source, '/v1/subscribers');
  const { answer, trouble } = usePolled(ask, POLL_MS, [source, replays]);
  return (
    <div class="listeners" data-source={source.id}>
      {title !== null && <PlainText as="h2" text={title} />}
      <Trouble text={trouble} />
      {answer?.data.length === 0 && <p class="empty">Nobody listens.</p>}
      <ul class="cards">
        {answer?.data.map((one) => (
          <ListenerCard key={one.name} listener={one} onReplay={() => setReplaying(one)} />
        ))}
      </ul>
      {replaying !== null && (
        <ReplayDialog
          listener={replaying}
          source={source}
          onClose={() => setReplaying(null)}
          onDone={(events) => {
            setReplaying(null);
            setReplays(replays + 1);
            announce(`${plural(events, 'event')} come again`);
          }}
        />
      )}
    </div>
  );
}

const STATE_WORDS = {
  bad: 'has given up on some',
  failing: 'fails at the moment',
  behind: 'is behind',
  well: 'has heard everything',
};

function ListenerCard({ listener, onReplay }: { listener: Subscriber; onReplay: () => void }) {
  const { name, lag, failures, dead_letters: dead, last_error: error, oldest_pending_at: oldest } = listener;
  const state = dead > 0 ? 'bad' : failures > 0 ? 'failing' : lag > 0 ? 'behind' : 'well';
  const figures = [
    ['behind', lag.toLocaleString()],
    ['failures', failures.toLocaleString()],
    ['dead letters', dead.toLocaleString()],
    ['up to', `№ ${listener.position.toLocaleString()}`],
  ];
  return (
    <li class="card" data-listener={name} data-state={state}>
      <div class="card-head">
        <PlainText as="h3" text={name} />
        <span class="badge" data-state={state}>
          {STATE_WORDS[state]}
        </span>
      </div>
      <dl class="figures">
        {figures.map(([figure, value]) => (
          <div key={figure}>
            <dt>{figure}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p class="faint card-line">
        {oldest === null ? 'nothing waits' : 'the oldest waits since '}
        {oldest !== null && <Ago at={oldest} />}
        {' · '}
        <PlainText text={listener.events.join(', ')} />
      </p>
      {error !== null && (
        <p class="last-error">
          <PlainText text={error} />
        </p>
      )}
      <Button onClick={onReplay} data-action="replay">
        Deliver again…
      </Button>
    </li>
  );
}

interface ReplayProps {
  readonly listener: Subscriber;
  readonly source: Source;
  readonly onClose: () => void;
  readonly onDone: (events: number) => void;
}

function ReplayDialog({ listener, source, onClose, onDone }: ReplayProps) {
  const [dead, setDead] = useState(listener.dead_letters > 0);
  const [from, setFrom] = useState('');
  const { trouble, attempt } = useAttempt(true);
  const ready = dead || /^\d{1,15}$/.test(from);
  const replay = async (): Promise<void> => {
    const path = `/v1/subscribers/${encodeURIComponent(listener.name)}/replay`;
    const what = dead ? { dead: true } : { from: Number(from) };
    onDone((await postJson<{ events: number }>(source, path, what)).events);
  };
  return (
    <Dialog title="Deliver again?" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void attempt(replay);
        }}
      >
        <p>
          <PlainText as="strong" text={listener.name} /> hears once more what it may have heard already.
        </p>
        <label class="check">
          <input type="radio" name="what" checked={dead} onChange={() => setDead(true)} />
          its {plural(listener.dead_letters, 'dead letter')}
        </label>
        <label class="check">
          <input type="radio" name="what" checked={!dead} onChange={() => setDead(false)} />
          everything from a number on
        </label>
        {!dead && (
          <label class="field">
            From number{' '}
            <input inputMode="numeric" value={from} onInput={(event) => setFrom(event.currentTarget.value.trim())} />
          </label>
        )}
        <Trouble text={trouble} />
        <div class="actions">
          <Button onClick={onClose}>Leave it</Button>
          <button type="submit" class="primary" disabled={!ready} data-action="confirm-replay">
            Deliver again
          </button>
        </div>
      </form>
    </Dialog>
  );
}
