import { withDeadline } from '../deadline.ts';
import { nameOf, textOf } from '../fields.ts';
import { downloadFrom } from '../http.ts';
import { type OutgoingFile, SendFailure } from '../platform.ts';
import type { DingtalkApi } from './api.ts';
import { sendFailureOf } from './failures.ts';
import { voiceLength } from './voice-length.ts';

const TRANSFER_MS = 120_000;
const MOST_ADDRESS = 8192;
/** What DingTalk plays as a voice message. */
const MOST_VOICE = 2 * 1024 * 1024;

/** A message of the API: its kind, and what it holds. */
export interface ApiMessage {
  readonly msgKey: string;
  readonly msgParam: Readonly<Record<string, string>>;
}

/**
 * Reads a file that a person sent. The code it came with is turned into an address that counts for a short time, and only
 * addresses of DingTalk's own storage are read. Throws `SendFailure`.
 */
export async function downloadFile(
  api: DingtalkApi,
  ref: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const at = ref.indexOf(':');
  const json = { robotCode: ref.slice(0, at), downloadCode: ref.slice(at + 1) };
  try {
    return await withDeadline(signal, TRANSFER_MS, async (deadline) => {
      const { downloadUrl } = await api.call({ path: '/v1.0/robot/messageFiles/download', json }, deadline);
      const address = api.app.addresses.file(textOf(downloadUrl, MOST_ADDRESS) ?? '');
      if (address === null) throw new SendFailure('the file lies at no address of DingTalk', null, 'forbidden');
      return await downloadFrom(address, {}, maxBytes, deadline);
    });
  } catch (thrown) {
    throw sendFailureOf(thrown, api.redact);
  }
}

/** Brings a file to DingTalk; returns the message that shows it. */
export async function uploadFile(api: DingtalkApi, file: OutgoingFile, signal: AbortSignal): Promise<ApiMessage> {
  const name = baseName(file);
  const lengthMs = file.kind === 'voice' && file.bytes.length <= MOST_VOICE ? voiceLength(file.bytes) : null;
  const type = file.kind === 'image' ? 'image' : lengthMs === null ? 'file' : 'voice';
  const mediaId = await upload(api, type, name, file, signal).catch((thrown: unknown) => {
    const { message, retryAfterMs, kind } = sendFailureOf(thrown, api.redact);
    // Whatever became of the file: no message has left yet.
    throw new SendFailure(message, retryAfterMs, kind === 'uncertain' ? 'transient' : kind);
  });
  if (type === 'image') return { msgKey: 'sampleImageMsg', msgParam: { photoURL: mediaId } };
  if (lengthMs !== null) return { msgKey: 'sampleAudio', msgParam: { mediaId, duration: String(lengthMs) } };
  const [, fileType = 'bin'] = /\.([a-z0-9]{1,16})$/i.exec(name) ?? [];
  return { msgKey: 'sampleFile', msgParam: { mediaId, fileName: name, fileType: fileType.toLowerCase() } };
}

async function upload(
  api: DingtalkApi,
  type: 'image' | 'file' | 'voice',
  name: string,
  { bytes, mime }: OutgoingFile,
  signal: AbortSignal,
): Promise<string> {
  return await api.withToken(signal, async (token) => {
    const media = new Blob([Buffer.from(bytes)], { type: mime ?? 'application/octet-stream' });
    const body = new FormData();
    body.append('media', media, name);
    const url = api.app.addresses.oapi(`/media/upload?access_token=${encodeURIComponent(token)}&type=${type}`);
    const { media_id: mediaId } = await api.ask(url, { method: 'POST', body }, signal, TRANSFER_MS);
    const id = textOf(mediaId, 512);
    if (!id) throw new SendFailure('DingTalk did not say where it put the file', null);
    return id;
  });
}

/** Without its folder, which stays private. */
export function baseName({ name }: OutgoingFile): string {
  return nameOf(name.split(/[/\\]/).at(-1)) ?? 'file';
}
