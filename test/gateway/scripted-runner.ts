import { runTools } from '../../src/agent/run-tools.ts';
import type { AgentRunner, Compression, TranscriptTask, TurnReport, TurnTask } from '../../src/agent/runner.ts';
import type { ToolSet } from '../../src/agent/tools/tool.ts';
import type { MessageToAppend } from '../../src/store/transactions/messages.ts';

const SAYINGS: Readonly<Record<string, string>> = { mute: '', invisible: '\u200b \u2060\n', shrug: 'NOTHING.' };

/**
 * An agent that does what the message says, word by word: `tool` runs a tool, `wait` waits until it is released, `fail`
 * fails, `ponder` waits without having said or kept anything, `ask` asks a person for leave, `shrug` has nothing to say,
 * `mute` says nothing, `invisible` says characters that nobody sees. `call NAME {...}` at the end calls that tool of the
 * gateway with those arguments, as a model does.
 * It keeps its steps as a real one does.
 */
export class ScriptedRunner implements AgentRunner {
  readonly description = 'scripted';
  readonly model = 'scripted';
  readonly tasks: TurnTask[] = [];
  readonly forgotten: string[] = [];
  /** The tools of the gateway it works in. */
  tools: () => Promise<ToolSet> = async () => new Map();
  /** What those answered, the last one last. */
  readonly toolAnswers: string[] = [];
  /** What it was asked beside its conversations. */
  readonly considered: TranscriptTask[] = [];
  /** What it answers to that. */
  thoughts: (task: TranscriptTask) => Promise<string | null> = async () => null;
  #release: () => void = () => undefined;
  #released = new Promise<void>((resolve) => {
    this.#release = resolve;
  });

  /** Lets every turn that waits go on, now and later. */
  release(): void {
    this.#release();
  }

  async run(task: TurnTask): Promise<TurnReport> {
    this.tasks.push(task);
    const said = task.text ?? task.transcript.findLast(({ role }) => role === 'user')?.text ?? '';
    const words = said.split(' ');
    const rows: MessageToAppend[] = task.text === null ? [] : [{ role: 'user', text: said, turnId: task.turnId }];
    if (words.includes('tool')) await this.#useTool(task, rows);
    if (words.includes('fail')) throw new TypeError('told to fail');
    if (words.includes('ponder')) await this.#pause(task);
    if (words.includes('wait')) await this.#wait(task, rows);
    const leave = words.includes('ask') ? await this.#ask(task) : '';
    await this.#call(task, said);
    const text = SAYINGS[words.find((word) => Object.hasOwn(SAYINGS, word)) ?? ''] ?? `did: ${said}${leave}`;
    const messages: MessageToAppend[] = [...rows, { role: 'assistant', text, turnId: task.turnId }];
    return { text, messages, model: 'scripted', usage: { input: 1, output: 1 }, compressed: null };
  }

  async compress(): Promise<Compression | null> {
    return null;
  }

  askAbout(task: TranscriptTask): Promise<string | null> {
    this.considered.push(task);
    return this.thoughts(task);
  }

  async models(): Promise<readonly string[]> {
    return ['scripted', 'other'];
  }

  async forget(sessionId: string): Promise<void> {
    this.forgotten.push(sessionId);
  }

  async close(): Promise<void> {}

  async #useTool(task: TurnTask, rows: MessageToAppend[]): Promise<void> {
    const call = { id: 'call-1', name: 'look', args: {} };
    const { turnId } = task;
    await task.context.keep([...rows, { role: 'assistant', text: '', turnId, data: { toolCalls: [call] } }]);
    rows.length = 0;
    await task.context.keep([
      { role: 'tool', text: 'seen', turnId, data: { toolCallId: call.id, name: 'look', ok: true } },
    ]);
  }

  /** Runs a real tool, behind the same questions as for a real agent. */
  async #call(task: TurnTask, said: string): Promise<void> {
    const [, name, args = ''] = /\bcall (\w+) (\{.*\})$/s.exec(said) ?? [];
    if (name === undefined) return;
    for await (const rows of runTools([{ id: 'call-2', name, args: JSON.parse(args) }], await this.tools(), task)) {
      this.toolAnswers.push(...rows.map(({ text }) => text));
    }
  }

  async #ask(task: TurnTask): Promise<string> {
    const approval = await task.context.approve({ tool: 'run_command', action: 'spin the wheel' });
    return approval.allowed ? ', allowed' : `, refused: ${approval.reason}`;
  }

  /** Until it is released; a turn that is stopped meanwhile throws. */
  async #pause({ signal }: TurnTask): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([this.#released, stopped]);
    if (signal.aborted) throw signal.reason;
  }

  async #wait(task: TurnTask, rows: MessageToAppend[]): Promise<void> {
    task.context.channel.publish({ type: 'text', text: 'thinking' });
    const stopped = await this.#pause(task).then(
      () => false,
      () => true,
    );
    if (!stopped) return;
    const partial: MessageToAppend = {
      role: 'assistant',
      text: 'thinking',
      turnId: task.turnId,
      data: { partial: true },
    };
    await task.context.keep([...rows, partial]).catch(() => undefined); // The session may be gone.
    throw task.signal.reason;
  }
}
