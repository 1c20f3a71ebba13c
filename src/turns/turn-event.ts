import type { StepEvent } from '../agent/runner.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';

/** What a turn asks a person, and what came of it. */
export interface QuestionEvent {
  readonly type: 'question';
  readonly id: string;
  readonly tool: string;
  /** What would be done, in one line a person can judge. */
  readonly action: string;
  readonly state: 'asked' | 'allowed' | 'denied';
}

/** What happens in a turn, from the moment it is durable to its end, as everybody who looks on is told. */
export type TurnEvent =
  | { readonly type: 'accepted'; readonly sessionId: string; readonly turnId: string }
  | StepEvent
  | QuestionEvent
  /** It is over, here or elsewhere: this is what the store has of it. */
  | { readonly type: 'finished'; readonly turn: TurnResultRow }
  /** It runs here no longer, and is not over: the process stops, or another one has it. */
  | { readonly type: 'interrupted' };

/** What a running turn does just now. */
export interface TurnActivity {
  readonly phase: 'thinking' | 'tool' | 'replying';
  /** The tool, while one runs. */
  readonly tool: string | null;
}
