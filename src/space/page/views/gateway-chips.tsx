import { useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { type Room, roomsOf } from '../data/rooms.ts';
import { announce, now } from '../ui.ts';
import { useAttempt } from './asking.ts';
import { Dialog } from './dialog.tsx';
import { Ago, Button, Fact, Facts, PlainText, plural, Trouble } from './parts.tsx';

/** How each gateway is; more of it when it is asked. */
export function GatewayChips() {
  const { world, waiting } = useSpace();
  const [open, setOpen] = useState<string | null>(null);
  void world.calm.value;
  const inhabited = new Set([...world.sessions.values()].map(({ room }) => room));
  // Those that are not heard first: where there are more than fit, trouble must not be out of sight.
  const rooms = roomsOf(world.sources, inhabited, now.value).sort((a, b) => Number(a.live) - Number(b.live));
  const chosen = rooms.find(({ id }) => id === open);
  return (
    <>
      <ul class="chips" aria-label="Gateways">
        {waiting.value !== null && (
          <li class="chip" data-state="connecting">
            <PlainText as="span" text={waiting.value} />
          </li>
        )}
        {rooms.map((room) => (
          <li key={room.id}>
            <Button
              class="chip"
              data-gateway={room.id}
              data-state={room.live || room.state === 'connecting' ? room.state : 'grey'}
              onClick={() => setOpen(room.id)}
              title={room.note}
            >
              <span class="chip-mark" aria-hidden="true" />
              <PlainText as="span" class="chip-name" text={room.name} />
              <span class="faint">{room.live || room.state === 'connecting' ? room.state : 'not heard'}</span>
              {room.gateway !== null && <PlainText as="span" class="faint version" text={room.gateway.version} />}
              {room.source?.odd && <span class="badge">other version</span>}
            </Button>
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
  const { trouble, attempt } = useAttempt();
  const { gateway, source } = room;
  const check = async (): Promise<void> => {
    // 503 has the same body: it says what is not ready.
    const answer = (await (await source?.source.fetch('/ready'))?.json()) as Partial<Readiness> | undefined;
    if (answer?.checks === undefined) throw new TypeError('nobody answers');
    setReadiness({ state: answer.state ?? 'unknown', checks: answer.checks });
    announce(`${room.name} is ${answer.state}`);
  };
  return (
    <Dialog title={room.name} onClose={onClose}>
      <Facts>
        <Fact name="State" text={room.note} />
        <Fact name="Version" text={gateway?.version ?? 'unknown'} />
        {source?.odd && <Fact name="Other version">{source.odd}</Fact>}
        {gateway !== null && (
          <>
            <Fact name="Instance" as="code" text={gateway.id} />
            <Fact name="Host" text={`${gateway.host}${gateway.pid === 0 ? '' : `, process ${gateway.pid}`}`} />
            <Fact name="Started" at={gateway.started_at} />
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
        {source !== null && <Button onClick={() => void attempt(check)}>Check now</Button>}
        <Button class="primary" onClick={onClose}>
          Close
        </Button>
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
          <PlainText as="strong" text={name} />
          <span class="hidden">{ok ? 'is well' : 'is not well'}</span>
          <PlainText as="span" class="faint" text={detail} />
        </li>
      ))}
    </ul>
  );
}
