import { createHash } from 'node:crypto';

/** A message of the bot as people see it. */
export interface QqMessage {
  readonly id: string;
  readonly reference: string;
  /** Below which address it was sent: `/v2/users/ID`, `/v2/groups/ID`, `/channels/ID`, `/dms/ID`. */
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly file: QqFile | null;
  readonly stream: 'open' | 'finished' | null;
}

export interface QqFile {
  readonly type: number;
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** What QQ refuses a message with. */
export class QqRefusal extends Error {
  readonly status: number;
  readonly code: number;
  readonly data: object | undefined;

  constructor(code: number, message: string, status = 400, data?: object) {
    super(message);
    this.status = status;
    this.code = code;
    this.data = data;
  }
}

/** What somebody said, as far as answers to it go. */
interface UserMessage {
  readonly path: string;
  /** Epoch milliseconds. */
  until: number;
  readonly numbers: Set<number>;
}

const MINUTE_MS = 60_000;
const LONGEST_TEXT = 4000;
const MOST_LABEL = 10;
const TOO_LATE = [40034128, '被动回复时间或次数超限'] as const;

interface Stream {
  readonly message: QqMessage;
  readonly number: number;
  content: string;
  index: number;
  isDone: boolean;
}

/** What was said and answered, with the rules that QQ has for answers: a window, a number of them, each numbered once. */
export class QqMessages {
  /** What people see, oldest first. */
  readonly shown: QqMessage[] = [];
  readonly files = new Map<string, QqFile>();
  /** What is said unasked is taken. */
  takesPushes = true;
  takesMarkdown = true;
  takesAddresses = true;
  /** How many answers a message to people may have; in groups one more. */
  mostAnswers = 4;
  /** The next message waits until somebody has looked at it. */
  nextAudit: string | null = null;
  readonly #said = new Map<string, UserMessage>();
  readonly #events = new Map<string, string>();
  readonly #streams = new Map<string, Stream>();
  #made = 0;

  said(messageId: string, path: string): void {
    const ms = path.startsWith('/v2/users') ? 60 * MINUTE_MS : 5 * MINUTE_MS;
    this.#said.set(messageId, { path, until: Date.now() + ms, numbers: new Set() });
  }

  /** Something happened that allows to answer. */
  happened(eventId: string, path: string): void {
    this.#events.set(eventId, path);
  }

  /** Nothing that was said so far may be answered any more. */
  closeWindows(): void {
    for (const said of this.#said.values()) said.until = 0;
  }

  send(path: string, body: Record<string, unknown>): object {
    const isV2 = path.startsWith('/v2/');
    const text = isV2 ? this.#words(body) : this.#guildWords(body);
    const media = body.msg_type === 7 ? (body.media as { file_info?: string } | undefined) : undefined;
    const file = media === undefined ? null : (this.files.get(`${path} ${media.file_info}`) ?? null);
    if (body.msg_type === 7 && file === null) throw new QqRefusal(304080, '文件信息无效');
    this.#checkAnswer(path, body, isV2);
    const message = this.#show(path, body, text, file, null);
    const audit = this.nextAudit;
    this.nextAudit = null;
    if (audit !== null) {
      this.shown.pop();
      throw new QqRefusal(304024, '等待人工审核', 202, { message_audit: { audit_id: audit } });
    }
    return answerOf(message);
  }

  stream(path: string, body: Record<string, unknown>): object {
    const { stream_msg_id: id, index, content_raw, input_mode, input_state } = body;
    const text = String(content_raw);
    const stream = id === undefined ? this.#openStream(path, body) : this.#streams.get(String(id));
    if (stream === undefined || stream.isDone) throw new QqRefusal(12002, '流式消息不存在');
    if (stream.number !== body.msg_seq) throw new QqRefusal(12002, 'msg_seq');
    if (!Number.isSafeInteger(index) || Number(index) <= stream.index) throw new QqRefusal(12002, 'index');
    if (input_mode === 'replace' && !text.startsWith(stream.content)) {
      throw new QqRefusal(40007, '已下发内容前缀不可修改');
    }
    const content = input_mode === 'append' ? stream.content + text : text;
    if (content.length > LONGEST_TEXT) throw new QqRefusal(40054007, '消息长度超限');
    stream.index = Number(index);
    stream.content = content;
    stream.isDone = input_state === 10;
    const at = this.shown.findIndex((each) => each.id === stream.message.id);
    this.shown[at] = { ...stream.message, text: stream.content, stream: stream.isDone ? 'finished' : 'open' };
    return answerOf(stream.message);
  }

  #openStream(path: string, body: Record<string, unknown>): Stream {
    this.#checkAnswer(path, body, true);
    const message = this.#show(path, body, '', null, 'open');
    const stream: Stream = { message, number: Number(body.msg_seq), content: '', index: -1, isDone: false };
    this.#streams.set(message.id, stream);
    return stream;
  }

  #words({ msg_type, content, markdown, keyboard }: Record<string, unknown>): string {
    if (msg_type === 7) return '';
    const words = msg_type === 2 ? (markdown as { content?: unknown } | undefined)?.content : content;
    if (typeof words !== 'string' || words.trim() === '') throw new QqRefusal(50006, '消息为空');
    if (msg_type === 2 && (content !== undefined || !this.takesMarkdown)) {
      throw new QqRefusal(40034127, '无markdown模板权限');
    }
    if (msg_type !== 2 && msg_type !== 0) throw new QqRefusal(22006, '消息类型与内容不匹配');
    if (msg_type !== 2 && keyboard !== undefined) throw new QqRefusal(304039, '消息按钮组件解析错误');
    if (labelsOf(keyboard).some((label) => [...label].length > MOST_LABEL))
      throw new QqRefusal(305007, '键盘样式参数错误');
    return this.#checkWords(words, 40054010);
  }

  #guildWords({ content, markdown, keyboard }: Record<string, unknown>): string {
    if (markdown !== undefined || keyboard !== undefined) throw new QqRefusal(50056, '不允许发送 markdown content');
    if (typeof content !== 'string' || content.trim() === '') throw new QqRefusal(50006, '消息为空');
    return this.#checkWords(content, 304003);
  }

  #checkWords(words: string, refusal: number): string {
    if (words.length > LONGEST_TEXT) throw new QqRefusal(40054007, '消息长度超限');
    if (!this.takesAddresses && /\w\.[a-z]{2}/i.test(words)) throw new QqRefusal(refusal, '不允许发送URL');
    return words;
  }

  #checkAnswer(path: string, { msg_id, event_id, msg_seq }: Record<string, unknown>, isNumbered: boolean): void {
    if (msg_id === undefined && event_id === undefined) {
      if (!this.takesPushes) throw new QqRefusal(40034105, '主动消息发送失败，无权限');
      return;
    }
    if (msg_id === undefined) {
      if (this.#events.get(String(event_id)) !== path) throw new QqRefusal(40034025, '请求参数event_id无效');
      return;
    }
    const said = this.#said.get(String(msg_id));
    if (said?.path !== path) throw new QqRefusal(isNumbered ? 40034024 : 304026, '请求参数msg_id无效或越权');
    if (said.until < Date.now()) throw isNumbered ? new QqRefusal(...TOO_LATE) : new QqRefusal(304027, 'MSG_EXPIRE');
    if (!isNumbered) return;
    const number = Number(msg_seq ?? 1);
    if (said.numbers.has(number)) throw new QqRefusal(40054005, '消息被去重，请检查请求msgseq');
    const most = path.startsWith('/v2/users') ? this.mostAnswers : this.mostAnswers + 1;
    if (said.numbers.size >= most) throw new QqRefusal(...TOO_LATE);
    said.numbers.add(number);
  }

  #show(
    path: string,
    body: Readonly<Record<string, unknown>>,
    text: string,
    file: QqFile | null,
    stream: QqMessage['stream'],
  ): QqMessage {
    this.#made += 1;
    const id = `ROBOT1.0_${digest(`sent ${this.#made}`)}!!`;
    const message = { id, reference: referenceOf(id), path, body, text, file, stream };
    this.shown.push(message);
    return message;
  }
}

/** What a message is quoted with. */
export function referenceOf(messageId: string): string {
  return `REFIDX_${digest(messageId).slice(0, 24)}==`;
}

export function labelsOf(keyboard: unknown): string[] {
  const { content } = (keyboard ?? {}) as { content?: { rows: { buttons: { render_data: { label: string } }[] }[] } };
  return (content?.rows ?? []).flatMap(({ buttons }) => buttons.map(({ render_data }) => render_data.label));
}

function answerOf({ id, reference }: QqMessage): object {
  return { id, timestamp: new Date().toISOString(), ext_info: { ref_idx: reference } };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
