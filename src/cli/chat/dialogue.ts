import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ApprovalAnswer } from '../../lifecycle/states.ts';
import type { PendingApproval } from '../../people/approvals.ts';
import type { ReceiveResult } from '../../turns/conversations.ts';
import { failureText } from '../../turns/texts.ts';
import { packageVersion } from '../package-version.ts';
import { printable } from '../print.ts';
import type { Settings } from '../settings.ts';

import { History } from './history.ts';
import { Keyboard, type KeyboardListener, type Press } from './keyboard.ts';
import { LEAVING, LineInput } from './line-input.ts';
import { Screen } from './screen.ts';
import { listenToSignals } from './signals.ts';
import { type ReplyPresenter, TerminalConversation } from './terminal-conversation.ts';
import { type Style, styleFor, TurnView } from './turn-view.ts';
import { visibleText } from './visible-text.ts';

export interface DialogueOptions {
  /** The session to go on from. */
  readonly resume: string | null;
  readonly reasoning: boolean;
}

const PROMPT = '> ';
const QUESTION = '[y/N] ';
/** A second Ctrl-C within this leaves. */
const AGAIN_MS = 2000;

/** A conversation in a terminal, from its first line to the last. */
export class Dialogue implements KeyboardListener, ReplyPresenter {
  readonly #settings: Settings;
  readonly #options: DialogueOptions;
  readonly #style: Style = styleFor(true, process.env);
  readonly #screen: Screen;
  readonly #keyboard: Keyboard;
  readonly #history: History;
  readonly #input: LineInput;
  /** Questions of the agent, the oldest first; the first of them is being asked. */
  #questions: PendingApproval[] = [];
  /** What was being typed when a question came. */
  #putAside = '';
  /** How many messages are not answered yet. */
  #unanswered = 0;
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #redrawing = false;
  readonly #leaving = Promise.withResolvers<number>();
  #left = false;
  #conversation: TerminalConversation | null = null;

  private constructor(settings: Settings, options: DialogueOptions) {
    const { stdin, stdout } = process;
    this.#settings = settings;
    this.#options = options;
    this.#screen = new Screen(stdout);
    this.#keyboard = new Keyboard(stdin, stdout, this);
    this.#history = new History(settings.home);
    this.#input = new LineInput(this.#history);
  }

  /** Holds one; returns what to exit with. */
  static hold(settings: Settings, options: DialogueOptions): Promise<number> {
    return new Dialogue(settings, options).#hold();
  }

  async #hold(): Promise<number> {
    const { stdout } = process;
    // A terminal that is gone says so when it is written to; that is a way to leave, not a failure.
    stdout.on('error', () => this.gone());
    stdout.on('resize', () => this.#screen.resized());
    const forget = listenToSignals((signal, exitCode) => {
      if (signal === 'SIGINT') this.#interrupt(exitCode);
      else this.#leaving.resolve(exitCode);
    });
    let last: string | null = null;
    let code = 1;
    try {
      this.#conversation = await TerminalConversation.open(this.#settings, this, false);
      await this.#greet(this.#conversation);
      this.#keyboard.open();
      this.#draw();
      code = await this.#leaving.promise;
    } finally {
      this.#left = true;
      this.#screen.show(null);
      this.#screen.endLine();
      this.#keyboard.close();
      last = (await this.#conversation?.end()) ?? null;
      forget();
    }
    if (last !== null) this.#screen.line(this.#style.dim(`moirai chat --resume ${last} goes on from here.`));
    return code;
  }

  async #greet(conversation: TerminalConversation): Promise<void> {
    const { resume } = this.#options;
    const session = resume === null ? null : await conversation.resume(resume);
    this.#remark(`moirai ${packageVersion()} · ${conversation.model}`);
    if (session !== null) this.#remark(`Back in: ${session.title ?? session.parentId}. I see everything said in it.`);
    this.#remark('/help lists the commands; Ctrl-D leaves.');
  }

  pressed(press: Press): void {
    if (this.#left) return;
    const { name } = press;
    if (name === 'return') this.#submit();
    else if (name === 'ctrl-c') this.#interrupt(0);
    else if (name === 'ctrl-l') this.#screen.clear();
    else if (name === 'ctrl-z') this.#keyboard.suspend();
    else if (name === 'ctrl-d' && this.#input.text === '') this.#leaving.resolve(0);
    else this.#edit(press);
  }

  pasted(text: string): void {
    this.#input.paste(text);
    this.#redrawSoon();
  }

  gone(): void {
    this.#leaving.resolve(0);
  }

  back(): void {
    this.#screen.resized();
  }

  approvalRequested(pending: PendingApproval): void {
    this.#questions.push(pending);
    if (this.#questions.length === 1) this.#ask(pending);
    void pending.settled.then(() => this.#settled(pending));
  }

  notice(text: string): void {
    this.#screen.line(this.#style.dim(visibleText(text)));
  }

  lost(): void {
    this.notice('This process was away for longer than its lease, so the session was given up.');
    this.#leaving.resolve(1);
  }

  #edit(press: Press): void {
    const choices = this.#input.press(press);
    if (choices.length > 0) this.#remark(choices.join('  '));
    this.#redrawSoon();
  }

  #submit(): void {
    this.#draw();
    const { text } = this.#input;
    this.#screen.commit();
    this.#input.set('');
    const [pending] = this.#questions;
    if (pending !== undefined) this.#answer(pending, text);
    else if (text.trim() !== '') {
      this.#history.add(text);
      this.#input.set('');
      void this.#say(text);
    }
    this.#draw();
  }

  async #say(text: string): Promise<void> {
    const [, name = ''] = /^\s*\/([a-z]+)\s*$/i.exec(text.toLowerCase()) ?? [];
    if (LEAVING.includes(name)) {
      this.#leaving.resolve(0);
      return;
    }
    this.#unanswered++;
    try {
      const result = await this.#conversation?.say(text);
      if (result !== undefined) await this.#follow(result, name);
    } catch (thrown) {
      const { code, message } = MoiraiError.wrap(thrown);
      if (!this.#left) this.#screen.line(this.#style.alarm(printable(failureText(code, message))));
    } finally {
      this.#unanswered--;
      this.#draw();
    }
  }

  async #follow(result: ReceiveResult, name: string): Promise<void> {
    if (result.type === 'answer') {
      const own = name === 'help' ? `\n${LEAVING.map((each) => `/${each}`).join(', ')} - leave this terminal` : '';
      this.#screen.line(visibleText(result.text) + own);
      return;
    }
    const view = new TurnView(this.#screen, this.#style, this.#options.reasoning);
    const unwatch = result.channel.subscribe((event) => view.show(event));
    try {
      view.finish(await result.channel.ended);
    } finally {
      unwatch();
    }
  }

  #interrupt(exitCode: number): void {
    const now = performance.now();
    const again = now - this.#interruptedAt < AGAIN_MS;
    this.#interruptedAt = now;
    if (again) this.#leaving.resolve(exitCode);
    else if (this.#unanswered > 0) void this.#stopTurn();
    else this.#clearLine();
  }

  async #stopTurn(): Promise<void> {
    try {
      const stopped = await this.#conversation?.stopTurn();
      // It has stopped: the next Ctrl-C is a first one again.
      if (stopped) this.#interruptedAt = Number.NEGATIVE_INFINITY;
      else this.#clearLine();
    } catch (thrown) {
      this.notice(MoiraiError.wrap(thrown).message);
    }
  }

  #clearLine(): void {
    this.#input.set('');
    this.#remark('Ctrl-C again leaves.');
    this.#draw();
  }

  #ask({ request }: PendingApproval): void {
    this.#putAside = this.#input.text;
    this.#input.set('');
    this.#screen.line(`Allow this? ${visibleText(request.action)}`);
    this.#draw();
  }

  #answer(pending: PendingApproval, text: string): void {
    const [, scope = 'once'] = /^\s*(?:y|yes|\/approve)(?:\s+(session|always))?\s*$/i.exec(text) ?? [null, 'deny'];
    const decision = scope.toLowerCase() as ApprovalAnswer;
    this.#conversation?.answer(pending, decision).catch((error: unknown) => {
      this.#remark(`The answer was not taken: ${MoiraiError.wrap(error).message}`);
    });
  }

  /** The question was answered, or its time is over. */
  #settled(pending: PendingApproval): void {
    const wasAsked = this.#questions[0] === pending;
    this.#questions = this.#questions.filter((other) => other !== pending);
    if (!wasAsked || this.#left) return;
    this.#input.set(this.#putAside);
    const [next] = this.#questions;
    if (next !== undefined) this.#ask(next);
    this.#draw();
  }

  #remark(text: string): void {
    this.#screen.line(this.#style.dim(printable(text)));
  }

  /** Many keys may come at once: they are drawn once. */
  #redrawSoon(): void {
    if (this.#redrawing) return;
    this.#redrawing = true;
    setImmediate(() => {
      this.#redrawing = false;
      this.#draw();
    });
  }

  /** While the agent speaks and nothing is typed, the prompt would only be in its way. */
  #draw(): void {
    if (this.#left) return;
    const { text, cursor } = this.#input;
    const asking = this.#questions.length > 0;
    const hidden = !asking && this.#unanswered > 0 && text === '';
    this.#screen.show(hidden ? null : { prompt: asking ? QUESTION : PROMPT, text, cursor });
  }
}
