import * as jobs from '../cron/job-store.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import * as credentials from '../inbound/credential-store.ts';
import * as platformState from '../inbound/platform-state-store.ts';
import * as submissions from '../inbound/submission-store.ts';
import * as facts from '../memory/fact-store.ts';
import * as liveReplies from '../outbound/live-reply-store.ts';
import * as places from '../outbound/place-store.ts';
import * as apiKeys from '../people/api-key-store.ts';
import * as approvals from '../people/approval-store.ts';
import * as pairing from '../people/pairing-store.ts';
import * as commands from '../turns/command-store.ts';
import * as turnRequests from '../turns/turn-request-store.ts';
import { storable } from './text.ts';
import type { Tx, TxContext } from './transaction.ts';
import * as activity from './transactions/activity.ts';
import * as backups from './transactions/backups.ts';
import * as conversations from './transactions/conversations.ts';
import * as deletion from './transactions/deletion.ts';
import * as deliveries from './transactions/deliveries.ts';
import * as eventQueue from './transactions/event-queue.ts';
import * as expiry from './transactions/expiry.ts';
import * as externalNotes from './transactions/external-notes.ts';
import * as heldDeliveries from './transactions/held-deliveries.ts';
import * as inspection from './transactions/inspection.ts';
import * as liveness from './transactions/liveness.ts';
import * as logRetention from './transactions/log-retention.ts';
import * as messages from './transactions/messages.ts';
import * as reading from './transactions/reading.ts';
import * as reaping from './transactions/reaping.ts';
import * as resetRules from './transactions/reset-rules.ts';
import * as sessionCommands from './transactions/session-commands.ts';
import * as settings from './transactions/settings.ts';
import * as subscribers from './transactions/subscribers.ts';
import * as turnFiles from './transactions/turn-files.ts';
import * as turns from './transactions/turns.ts';

/** Transactions that change the store, by name: the whole vocabulary of its port. */
export const WRITES = {
  startSession: sessionCommands.startSession,
  receive: conversations.receive,
  rollOver: sessionCommands.rollOver,
  resetSession: sessionCommands.resetSession,
  continueSession: sessionCommands.continueSession,
  endSession: sessionCommands.endSession,
  command: sessionCommands.command,
  deleteSession: deletion.deleteSession,
  pruneSessions: deletion.pruneSessions,
  pruneEvents: logRetention.pruneEvents,
  finishTurn: turns.finishTurn,
  joinTurns: turns.joinTurns,
  appendMessages: messages.appendMessages,
  indexMessages: messages.indexMessages,
  cleanIndex: messages.cleanIndex,
  bootInstance: liveness.bootInstance,
  beat: liveness.beat,
  probe: liveness.probe,
  stopInstance: liveness.stopInstance,
  forgetInstances: liveness.forgetInstances,
  announceInstance: liveness.announceInstance,
  reap: reaping.reap,
  reconcile: reaping.reconcile,
  expire: expiry.expire,
  applyRules: resetRules.applyRules,
  applyRulesTo: resetRules.applyRulesTo,
  subscribe: subscribers.subscribe,
  unsubscribe: subscribers.unsubscribe,
  replay: subscribers.replay,
  claimEvents: eventQueue.claimEvents,
  ackEvents: eventQueue.ackEvents,
  failEvents: eventQueue.failEvents,
  addDeliveries: deliveries.addDeliveries,
  claimReplies: deliveries.claimReplies,
  settleReply: deliveries.settleReply,
  releaseReplies: deliveries.releaseReplies,
  releaseHeld: heldDeliveries.releaseHeld,
  failSent: heldDeliveries.failSent,
  keepLiveReply: liveReplies.keepLiveReply,
  forgetLiveReply: liveReplies.forgetLiveReply,
  rememberFact: facts.rememberFact,
  forgetFact: facts.forgetFact,
  keepSetting: settings.keepSetting,
  acceptCommand: commands.acceptCommand,
  settleCommand: commands.settleCommand,
  forgetCommand: commands.forgetCommand,
  requestOfTurn: turnRequests.requestOfTurn,
  forgetTurnRequests: turnRequests.forgetTurnRequests,
  askApproval: approvals.askApproval,
  answerApproval: approvals.answerApproval,
  revokeApprovalRule: approvals.revokeApprovalRule,
  requestPairing: pairing.requestPairing,
  approvePairing: pairing.approvePairing,
  admit: pairing.admit,
  revokePairing: pairing.revokePairing,
  addApiKey: apiKeys.addApiKey,
  revokeApiKey: apiKeys.revokeApiKey,
  setPairedAdmin: pairing.setPairedAdmin,
  takeCredential: credentials.takeCredential,
  releaseCredential: credentials.releaseCredential,
  forwardSubmission: submissions.forwardSubmission,
  keepPlatformState: platformState.keepPlatformState,
  seePlace: places.seePlace,
  listPlace: places.listPlace,
  markPlace: places.markPlace,
  namePlace: places.namePlace,
  moveChat: places.moveChat,
  addJob: jobs.addJob,
  removeJob: jobs.removeJob,
  scheduleJob: jobs.scheduleJob,
  claimTicks: jobs.claimTicks,
  startRun: jobs.startRun,
  delayTick: jobs.delayTick,
  addExternalNote: externalNotes.addExternalNote,
  recordBackup: backups.recordBackup,
} as const;

/** Transactions that only look. (On PostgreSQL, reading the log may number it first.) */
export const READS = {
  nextDeadline: expiry.nextDeadline,
  getSession: reading.getSession,
  openSession: reading.openSession,
  findSession: reading.findSession,
  listSessions: reading.listSessions,
  stats: reading.stats,
  prunableSessions: deletion.prunableSessions,
  listEvents: reading.listEvents,
  lastSeq: reading.lastSeq,
  lastEvents: reading.lastEvents,
  activity: activity.activity,
  pulse: activity.pulse,
  sessionsById: activity.sessionsById,
  timeline: activity.timeline,
  subscriberPositions: reading.subscriberPositions,
  getTurn: turns.getTurn,
  turnResult: turns.turnResult,
  turnByRef: turns.turnByRef,
  openTurns: turns.openTurns,
  answeredTurns: turns.answeredTurns,
  turnText: turns.turnText,
  turnFiles: turnFiles.turnFiles,
  turnReply: turns.turnReply,
  latestReply: turns.latestReply,
  unfinishedTurns: turns.unfinishedTurns,
  staleTurns: turns.staleTurns,
  listMessages: messages.listMessages,
  lineageOf: messages.lineageOf,
  searchMessages: messages.searchMessages,
  recallFacts: facts.recallFacts,
  factOwners: facts.factOwners,
  findSetting: settings.findSetting,
  acceptedCommand: commands.acceptedCommand,
  turnRequests: turnRequests.turnRequests,
  findApproval: approvals.findApproval,
  waitingApprovals: approvals.waitingApprovals,
  answeredApprovals: approvals.answeredApprovals,
  abandonedApprovals: approvals.abandonedApprovals,
  grantedApproval: approvals.grantedApproval,
  listApprovalRules: approvals.listApprovalRules,
  listPairings: pairing.listPairings,
  isPaired: pairing.isPaired,
  listApiKeys: apiKeys.listApiKeys,
  findApiKey: apiKeys.findApiKey,
  isPairedAdmin: pairing.isPairedAdmin,
  listPlaces: places.listPlaces,
  findPlace: places.findPlace,
  placeNamed: places.placeNamed,
  platformState: platformState.platformState,
  liveReplyOf: liveReplies.liveReplyOf,
  abandonedLiveReplies: liveReplies.abandonedLiveReplies,
  countHeld: heldDeliveries.countHeld,
  movesOf: places.movesOf,
  listJobs: jobs.listJobs,
  findJob: jobs.findJob,
  storeTime: jobs.storeTime,
  listInstances: liveness.listInstances,
  heldBy: reaping.heldBy,
  listSubscribers: subscribers.listSubscribers,
  listDeadLetters: subscribers.listDeadLetters,
  countDeliveries: deliveries.countDeliveries,
  oldestDelivery: deliveries.oldestDelivery,
  checkPromises: inspection.checkPromises,
  engineSettings: inspection.engineSettings,
  checkIntegrity: inspection.checkIntegrity,
  overdueSessions: expiry.overdueSessions,
  lastBackup: backups.lastBackup,
} as const;

type Table = Record<string, (ctx: TxContext, args: never) => Tx<unknown>>;
type ArgsOf<T extends Table, N extends keyof T> = T[N] extends (ctx: TxContext, args: infer A) => Tx<unknown>
  ? A
  : never;
type ResultOf<T extends Table, N extends keyof T> = T[N] extends (ctx: TxContext, args: never) => Tx<infer R>
  ? R
  : never;

export type WriteName = keyof typeof WRITES;
export type ReadName = keyof typeof READS;
export type WriteArgs<N extends WriteName> = ArgsOf<typeof WRITES, N>;
export type WriteResult<N extends WriteName> = ResultOf<typeof WRITES, N>;
export type ReadArgs<N extends ReadName> = ArgsOf<typeof READS, N>;
export type ReadResult<N extends ReadName> = ResultOf<typeof READS, N>;

const ALL: Table = { ...WRITES, ...READS };

/** A named transaction as a generator; names and arguments arrive from another thread, so they are checked by name. */
export function transactionNamed(name: string, ctx: TxContext, args: unknown): Tx<unknown> {
  const make = ALL[name];
  if (make === undefined) throw new MoiraiError('internal', `no transaction is called ${name}`);
  return make(ctx, storable(args) as never);
}
