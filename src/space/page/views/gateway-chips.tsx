import { useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { sentenceOf } from '../data/answer-error.ts';
import { type Room, roomsOf } from '../data/rooms.ts';
import { announce, now } from '../ui.ts';
import { Dialog } from './dialog.tsx';
import { Ago, Fact, Facts, Moment, PlainText, plural, Trouble } from './parts.tsx';

/** How each gateway is; more of it when it is asked. */
export function GatewayChips() {
  const { world, waiting } = useSpace();
  const [open, setOpen] = useState<string | null>(null);
  void world.calm.value;
  const inhabited = new Set<string>();
  for (const { room } of world.sessions.values()) inhabited.add(room);
  // Those that are not heard first: where there are more than fit, trouble must not be out of sight.
  const rooms = roomsOf(world.sources, inhabited, now.value).sort((a, b) => Number(a.live) - Number(b.live));
  const chosen = rooms.find(({ id }) => id === open);
  return (
    <>
      <ul class="chips" aria-label="Gateways">
        {waiting.value !== null && (
          <li class="chip" data-state="connecting">
            <span>
              <PlainText text={waiting.value} />
            </span>
          </li>
        )}
        {rooms.map((room) => (
          <li key={room.id}>
            <button
              type="button"
              class="chip"
              data-gateway={room.id}
              data-state={room.live ? room.state : room.state === 'connecting' ? 'connecting' : 'grey'}
              onClick={() => setOpen(room.id)}
              title={room.note}
            >
              <span class="chip-mark" aria-hidden="true" />
              <span class="chip-name">
                <PlainText text={room.name} />
              </span>
              <span class="faint">
                {room.live ? room.state : room.state === 'connecting' ? 'connecting' : 'not heard'}
              </span>
              {room.gateway !== null && (
                <span class="faint version">
                  <PlainText text={room.gateway.version} />
                </span>
              )}
              {room.source?.odd && <span class="badge">other version</span>}
            </button>
          </li>
        ))}
      </ul>
      {chosen !== undefined && <GatewayDialog room={chosen} onClose={() => setOpen(null)} />}
    </>
  );
}

interface Readiness {
  readonly state: string;
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail: string }>>;
}

/** What a gateway says of itself, and its checks when they are asked for. */
function GatewayDialog({ room, onClose }: { room: Room; onClose: () => void }) {
  const [readiness, setReadiness] = useState<Readiness | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const { gateway, source } = room;
  const check = async (): Promise<void> => {
    if (source === null) return;
    setTrouble(null);
    try {
      // 503 has the same body: it says what is not ready.
      const answer = (await (await source.source.fetch('/ready')).json()) as Partial<Readiness>;
      if (answer.checks === undefined) throw new TypeError('nobody answers');
      setReadiness({ state: answer.state ?? 'unknown', checks: answer.checks });
      announce(`${room.name} is ${answer.state}`);
    } catch (thrown) {
      setTrouble(sentenceOf(thrown));
    }
  };
  return (
    <Dialog title={room.name} onClose={onClose}>
      <Facts>
        <Fact name="State">
          <PlainText text={room.note} />
        </Fact>
        <Fact name="Version">
          <PlainText text={gateway?.version ?? 'unknown'} />
        </Fact>
        {source?.odd && <Fact name="Other version">{source.odd}</Fact>}
        {gateway !== null && (
          <>
            <Fact name="Instance">
              <code>
                <PlainText text={gateway.id} />
              </code>
            </Fact>
            <Fact name="Host">
              <PlainText text={`${gateway.host}${gateway.pid === null ? '' : `, process ${gateway.pid}`}`} />
            </Fact>
            <Fact name="Started">
              <Moment at={gateway.startedAt} />
            </Fact>
            <Fact name="Holds">{plural(gateway.sessions, 'session')}</Fact>
          </>
        )}
        {source !== null && (
          <Fact name="Last heard">
            {source.heardAt === null ? 'never' : <Ago at={new Date(source.heardAt).toISOString()} />}
          </Fact>
        )}
      </Facts>
      {readiness !== null && <Checks readiness={readiness} />}
      <Trouble text={trouble} />
      <div class="actions">
        {source !== null && (
          <button type="button" onClick={() => void check()}>
            Check now
          </button>
        )}
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function Checks({ readiness }: { readiness: Readiness }) {
  return (
    <ul class="checks" aria-label={`Checks: ${readiness.state}`}>
      {Object.entries(readiness.checks).map(([name, { ok, detail }]) => (
        <li key={name} data-ok={ok}>
          <span aria-hidden="true">{ok ? '✓' : '✗'}</span>
          <strong>
            <PlainText text={name} />
          </strong>
          <span class="hidden">{ok ? 'is well' : 'is not well'}</span>
          <span class="faint">
            <PlainText text={detail} />
          </span>
        </li>
      ))}
    </ul>
  );
}
