import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { clampText, plainLine, plainText } from '../data/plain-text.ts';
import { agoOf, momentOf } from '../data/spans.ts';
import { PHASES } from '../protocol.ts';
import { now, openSession } from '../ui.ts';

interface PlainTextProps {
  readonly text: string;
  /** The element around it. */
  readonly as?: 'code' | 'h2' | 'h3' | 'span' | 'strong' | undefined;
  readonly class?: string;
}

/** One line from people. It keeps to itself: nothing in it turns what stands beside it. */
export function PlainText({ text, as: Tag, class: name }: PlainTextProps) {
  const line = <bdi>{plainLine(text)}</bdi>;
  return Tag === undefined ? line : <Tag class={name}>{line}</Tag>;
}

const CLAMPED_AT = 1200;

/** A text from people, its beginning first when it is long. */
export function LongPlainText({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const { text: beginning, cut } = clampText(text, CLAMPED_AT);
  return (
    <div class="said">
      <bdi>{plainText(whole ? text : beginning)}</bdi>
      {cut && (
        <Button class="link" onClick={() => setWhole(!whole)}>
          {whole ? 'show less' : `… show all ${text.length.toLocaleString()} characters`}
        </Button>
      )}
    </div>
  );
}

/** A moment, as long ago as it is. */
export function Ago({ at, faint = false }: { at: string | null; faint?: boolean }) {
  if (faint) return <span class="faint">{Ago({ at })}</span>;
  if (at === null || at === '') return <span class="none">never</span>;
  return (
    <time dateTime={at} title={momentOf(at)}>
      {agoOf(at, now.value)}
    </time>
  );
}

/** A moment in full and as long ago as it is. */
export function Moment({ at }: { at: string | null }) {
  if (at === null || at === '') return <span class="none">never</span>;
  return (
    <span>
      {momentOf(at)} <span class="faint nowrap">({agoOf(at, now.value)})</span>
    </span>
  );
}

export const PHASE_WORDS: Readonly<Record<string, string>> = {
  idle: 'idle',
  queued: 'queued',
  thinking: 'thinking',
  tool: 'using a tool',
  replying: 'replying',
  resume_pending: 'waiting to resume',
  suspended: 'suspended',
};

const KNOWN: ReadonlySet<string> = new Set(PHASES);

/** A phase as shape, colour and word, for people who cannot tell colours apart. */
export function PhaseMark({ phase, tool }: { phase: string; tool: string | null }) {
  return (
    <span class="phase" data-phase={KNOWN.has(phase) ? phase : 'unknown'}>
      <PhaseDot phase={phase} />
      <span>{PHASE_WORDS[phase] ?? <PlainText text={phase} />}</span>
      {tool !== null && <PlainText as="code" text={tool} />}
    </span>
  );
}

/** The signs that the figures in the picture hold. */
const SHAPES: Readonly<Record<string, string>> = {
  idle: 'M6 1.5L10.5 6 6 10.5 1.5 6z',
  queued: 'M1 3h10v6H1zM4.2 6h.01M7.8 6h.01',
  thinking: 'M1.5 6h.01M6 6h.01M10.5 6h.01',
  tool: 'M2 1.5h7v3H2zM5.5 4.5V11',
  replying: 'M1.5 2h9v6h-5L3 10.5V8H1.5z',
  resume_pending: 'M4 2v8M8 2v8',
  suspended: 'M2 5.5h8v5.5H2zM3.8 5.5V3.7a2.2 2.2 0 0 1 4.4 0v1.8',
};

export function PhaseDot({ phase }: { phase: string }) {
  return (
    <svg class="phase-dot" viewBox="0 0 12 12" aria-hidden="true" data-phase={KNOWN.has(phase) ? phase : 'unknown'}>
      <path d={SHAPES[phase] ?? 'M4 4.5a2 2 0 1 1 2 2v1M6 10h.01'} />
    </svg>
  );
}

/** Something went wrong, and what. */
export function Trouble({ text }: { text: string | null }) {
  return text === null ? null : (
    <p class="trouble" role="alert">
      <PlainText text={text} />
    </p>
  );
}

export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}

interface FactProps {
  readonly name: ComponentChildren;
  readonly children?: ComponentChildren;
  /** A text from people, and the element around it. */
  readonly text?: string;
  readonly as?: PlainTextProps['as'];
  readonly at?: string | null;
}

/** A name, and behind it a text, a moment, or anything else. */
export function Fact({ name, children, text, as, at }: FactProps) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {text !== undefined && <PlainText as={as} text={text} />}
        {at !== undefined && <Moment at={at} />}
        {children}
      </dd>
    </>
  );
}

/** A button that submits nothing. */
export function Button(props: ButtonHTMLAttributes) {
  return <button type="button" {...props} />;
}

/** Opens the panel of a session; without a label the id stands for it. */
export function SessionLink({ id, label = id }: { id: string; label?: string }) {
  return (
    <Button class="link" onClick={() => openSession(id)}>
      <PlainText text={label} />
    </Button>
  );
}

interface ChoiceProps {
  readonly legend: string;
  readonly options: readonly string[];
  readonly chosen: string;
  readonly onChoose: (option: string) => void;
}

/** One of a few, all in sight. */
export function Choice({ legend, options, chosen, onChoose }: ChoiceProps) {
  return (
    <fieldset class="choice">
      <legend class="hidden">{legend}</legend>
      {options.map((option) => (
        <Button key={option} aria-pressed={option === chosen} onClick={() => onChoose(option)}>
          {option}
        </Button>
      ))}
    </fieldset>
  );
}

interface ViewFrameProps {
  readonly name: string;
  /** Read by screen readers alone. */
  readonly title: string;
  readonly children: ComponentChildren;
}

/** A view whose title the eye needs not. */
export function ViewFrame({ name, title, children }: ViewFrameProps) {
  return (
    <section class={`view ${name}`} aria-labelledby="view-title">
      <h1 id="view-title" class="hidden">
        {title}
      </h1>
      {children}
    </section>
  );
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}
