import { refuse, refuseOld } from './dingtalk-refusal.ts';

const TYPES = ['image', 'voice', 'video', 'file'];
const SHOWN_AS: Readonly<Record<string, string>> = {
  sampleImageMsg: 'image',
  sampleFile: 'file',
  sampleAudio: 'voice',
};

interface Media {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly type: string;
}

/** Files at DingTalk: those of people have codes that give addresses, those of robots are uploaded and then shown. */
export class FakeFiles {
  readonly #received = new Map<string, { readonly bytes: Uint8Array; readonly url?: string }>();
  readonly #media = new Map<string, Media>();
  readonly #robotCode: string;

  constructor(robotCode: string) {
    this.#robotCode = robotCode;
  }

  /** Somebody sends a file; its code gives an address of this server unless another is given. */
  set(code: string, file: { readonly bytes: Uint8Array; readonly url?: string }): void {
    this.#received.set(code, file);
  }

  addressOf({ downloadCode, robotCode }: Readonly<Record<string, unknown>>, server: string): unknown {
    const file = this.#received.get(String(downloadCode));
    if (file === undefined || robotCode !== this.#robotCode) {
      return refuse(400, 'invalidParameter.robotCode.downloadCode', '下载码有误或者已经过期');
    }
    return { downloadUrl: file.url ?? `${server}/storage/${encodeURIComponent(String(downloadCode))}?signature=x` };
  }

  give(path: string): Buffer {
    const file = this.#received.get(decodeURIComponent(path.slice('/storage/'.length)));
    return file === undefined ? refuse(404, 'NoSuchKey', 'there is no such file') : Buffer.from(file.bytes);
  }

  async upload(type: string, body: Buffer<ArrayBuffer>, contentType: string): Promise<unknown> {
    if (!TYPES.includes(type)) return refuseOld(40004, '不合法的媒体文件类型');
    const form = await new Response(body, { headers: { 'content-type': contentType } }).formData();
    const media = form.get('media');
    if (media === null || typeof media === 'string') return refuseOld(40035, 'media');
    const media_id = `@lAD${this.#media.size + 1}`;
    this.#media.set(media_id, { name: media.name, bytes: new Uint8Array(await media.arrayBuffer()), type });
    return { errcode: 0, errmsg: 'ok', media_id, type, created_at: Date.now() };
  }

  /** What people see of a message that shows an uploaded file. */
  shown(msgKey: string, param: Readonly<Record<string, string>>): { name: string; bytes: Uint8Array } {
    const media = this.#media.get(param.photoURL ?? param.mediaId ?? '');
    if (media === undefined || media.type !== SHOWN_AS[msgKey]) {
      return refuse(400, 'invalidParameter.msgParam', 'media');
    }
    const isWhole = msgKey === 'sampleAudio' ? /^\d+$/.test(param.duration ?? '') : true;
    if (!isWhole || (msgKey === 'sampleFile' && !param.fileType)) {
      return refuse(400, 'invalidParameter.msgParam', 'duration, fileType');
    }
    return { name: param.fileName ?? media.name, bytes: media.bytes };
  }
}
