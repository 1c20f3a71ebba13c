type Json = Readonly<Record<string, unknown>>;

/** How the Graph API says no. */
export interface GraphRefusal {
  readonly status: number;
  readonly error: Json;
  /** In how many minutes calls are taken again, as the usage headers say. */
  readonly minutes?: number;
}

export function refusal(code: number, message: string, status = 400, subcode?: number, details?: string): GraphRefusal {
  const error = { message: `(#${code}) ${message}`, type: 'OAuthException', code, fbtrace_id: 'AzX1' };
  const more = details === undefined ? {} : { error_data: { messaging_product: 'whatsapp', details } };
  return { status, error: { ...error, ...more, ...(subcode === undefined ? {} : { error_subcode: subcode }) } };
}

/** What may be uploaded, and nothing else. */
export const UPLOAD_TYPES: ReadonlySet<string> = new Set([
  ...['audio/aac', 'audio/mp4', 'audio/mpeg', 'audio/amr', 'audio/ogg', 'audio/opus'],
  ...['application/vnd.ms-powerpoint', 'application/msword', 'application/vnd.ms-excel', 'application/pdf'],
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  ...['text/plain', 'image/jpeg', 'image/png', 'image/webp', 'video/mp4', 'video/3gpp'],
]);

/** Throws `GraphRefusal` for a message that the Cloud API would not take. */
export function checkMessage(payload: Json, templates: ReadonlySet<string>): void {
  const { to, recipient, type, biz_opaque_callback_data: data, recipient_type } = payload;
  const isAddressed = /^\d{5,20}$/.test(String(to)) || /^[A-Z]{2}\.\w+$/.test(String(recipient));
  if (!isAddressed || recipient_type !== 'individual') throw refusal(100, 'The parameter to is required.');
  if (data !== undefined && (typeof data !== 'string' || data.length > 512)) throw tooLong('biz_opaque_callback_data');
  const content = payload[String(type)] as Json | undefined;
  if (content === undefined) throw refusal(100, `Unexpected key or missing content for type ${String(type)}`);
  if (type === 'text') checkText(content.body, 4096, 'text.body');
  if (type === 'interactive') checkInteractive(content);
  if (type === 'template') checkTemplate(content, templates);
  if (content.caption !== undefined) checkText(content.caption, 1024, 'caption');
  if ((type === 'audio' || type === 'sticker') && 'caption' in content) throw refusal(100, 'Unexpected key "caption"');
}

interface Option {
  readonly id: string;
  readonly title: string;
  readonly description?: string;
}

function checkInteractive({ type, body, action }: Json): void {
  const { buttons, button, sections } = action as {
    buttons?: { type: string; reply: Option }[];
    button?: string;
    sections?: { title: string; rows: Option[] }[];
  };
  if (type === 'button') {
    checkText((body as Json).text, 1024, 'interactive.body.text');
    checkOptions(buttons?.map(({ reply }) => reply) ?? [], { most: 3, title: 20, id: 256 });
  } else if (type === 'list') {
    checkText((body as Json).text, 4096, 'interactive.body.text');
    checkText(button, 20, 'interactive.action.button');
    checkOptions(sections?.flatMap(({ rows }) => rows) ?? [], { most: 10, title: 24, id: 200 });
  } else throw refusal(131009, 'Parameter value is not valid');
}

function checkOptions(options: readonly Option[], limits: { most: number; title: number; id: number }): void {
  if (options.length === 0 || options.length > limits.most) throw refusal(131009, 'Invalid number of options');
  for (const { id, title, description = 'x' } of options) {
    checkText(title, limits.title, 'title');
    checkText(id, limits.id, 'id');
    checkText(description, 72, 'description');
  }
  for (const field of ['id', 'title'] as const) {
    if (new Set(options.map((each) => each[field])).size < options.length) throw refusal(131009, `Duplicated ${field}`);
  }
}

function checkTemplate({ name, language, components }: Json, templates: ReadonlySet<string>): void {
  const { code } = language as { code: string };
  if (!templates.has(`${String(name)} ${code}`))
    throw refusal(132001, 'Template name does not exist in the translation', 404);
  const [body] = components as { type: string; parameters: { type: string; text: string }[] }[];
  if (body?.type !== 'body' || body.parameters.length !== 1)
    throw refusal(132000, 'Number of parameters does not match');
  const text = body.parameters[0]?.text ?? '';
  if (text.length > 1024) throw refusal(132005, 'Template Hydrated Text Too Long');
  if (text === '' || /[\n\t]| {5}/.test(text)) throw refusal(132018, 'Param text cannot have new-line/tab characters');
}

function checkText(text: unknown, most: number, what: string): void {
  if (typeof text !== 'string' || text === '') throw refusal(131008, `Required parameter is missing: ${what}`);
  if (text.length > most) throw tooLong(what);
}

function tooLong(what: string): GraphRefusal {
  return refusal(100, `Param ${what} is too long`);
}
