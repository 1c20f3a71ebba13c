import fc from 'fast-check';
import { Continue, End, Receive, Reset, StartAttached } from './model-conversations.ts';
import { Deliver } from './model-delivery.ts';
import { Beat, Boot, Expire, Pass, Reap, Reconcile } from './model-liveness.ts';
import { AddJob, ReleaseClaims, RemoveJob, SendReplies, TakeTicks } from './model-queue.ts';
import type { AnyCommand } from './model-step.ts';
import { Background, Begin, CutLoop, Finish, Interrupt, Reopen, Suspend, Title, Touch } from './model-turns.ts';

/** Every kind of step, the usual ones more often. */
export function modelCommands(): fc.Arbitrary<AnyCommand>[] {
  const i = fc.nat(11);
  const s = fc.nat(11);
  const k = fc.nat(3);
  const actor = fc.constantFrom('user' as const, 'system' as const);
  const by = fc.oneof({ weight: 4, arbitrary: fc.constant('user' as const) }, { weight: 1, arbitrary: actor });
  const stale = fc.constantFrom(0, 0, 0, 0, 1);
  const receive = fc
    .tuple(i, k, by, fc.oneof(fc.nat(5), fc.nat(100_000), fc.nat(100_000)), fc.boolean())
    .map((tuple) => new Receive(...tuple));
  const finish = fc.tuple(i, s, stale, fc.nat(2)).map((tuple) => new Finish(...tuple));
  const begin = fc.tuple(i, s).map((tuple) => new Begin(...tuple));
  const resumeReason = fc.constantFrom('restart' as const, 'shutdown' as const, 'crash' as const);
  const interrupt = fc.tuple(i, s, resumeReason, stale).map((tuple) => new Interrupt(...tuple));
  const background = fc.tuple(i, s, fc.nat(2)).map((tuple) => new Background(...tuple));
  const reason = fc.constantFrom('api_close' as const, 'admin_close' as const, 'deleted' as const);
  const wall = fc.constantFrom(0, 0, 0, 0, 0, 3_600_000, -1_800_000);
  const ms = fc.oneof(fc.nat(1000), fc.nat(30_000), fc.nat(2 * 3_600_000));
  const sub = fc.constantFrom('all' as const, 'ends' as const);
  const fate = fc.constantFrom('ack' as const, 'ack' as const, 'fail' as const, 'die' as const, 'partial' as const);
  const queueFate = fc.constantFrom('done' as const, 'done' as const, 'refused' as const, 'forgotten' as const);
  return [
    fc.constant(new Boot()),
    fc.tuple(ms, wall).map((tuple) => new Pass(...tuple)),
    i.map((n) => new Beat(n)),
    ...[receive, receive, receive, begin, begin, finish, finish, finish],
    ...[interrupt, interrupt],
    fc.tuple(i, s).map((tuple) => new CutLoop(...tuple)),
    fc.tuple(i, s).map((tuple) => new Suspend(...tuple)),
    fc.tuple(i, s).map((tuple) => new Reopen(...tuple)),
    fc.tuple(i, s, actor).map((tuple) => new Touch(...tuple)),
    fc.tuple(i, s).map((tuple) => new Title(...tuple)),
    ...[background, background],
    fc.tuple(i, k).map((tuple) => new Reset(...tuple)),
    fc.tuple(i, s, fc.constantFrom('resume' as const, 'branch' as const)).map((tuple) => new Continue(...tuple)),
    fc.tuple(i, s, reason).map((tuple) => new End(...tuple)),
    fc.tuple(i, fc.nat(3)).map((tuple) => new StartAttached(...tuple)),
    fc.tuple(i, fc.nat(11)).map((tuple) => new Reap(...tuple)),
    i.map((n) => new Expire(n)),
    fc.tuple(i, s).map((tuple) => new Reconcile(...tuple)),
    fc.tuple(i, sub, fate).map((tuple) => new Deliver(...tuple)),
    fc.tuple(i, queueFate).map((tuple) => new SendReplies(...tuple)),
    fc.tuple(i, queueFate).map((tuple) => new TakeTicks(...tuple)),
    i.map((n) => new AddJob(n)),
    i.map((n) => new RemoveJob(n)),
    i.map((n) => new ReleaseClaims(n)),
  ];
}
