const OPUS_HZ = 48_000;
const AMR_FRAME_MS = 20;
/** Bytes of a frame of AMR by its mode, without its first byte. */
const AMR_BYTES = [12, 13, 15, 17, 19, 20, 26, 31, 5, 0, 0, 0, 0, 0, 0, 0] as const;
const AMR_BEGIN = '#!AMR\n';
const LAST_PAGE = 70_000;
const GRANULE = 6;

/** How long a recording is, in milliseconds; null for one that DingTalk does not play: it knows Ogg and AMR. */
export function voiceLength(bytes: Uint8Array): number | null {
  const voice = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const ms = voice.subarray(0, 4).toString('latin1') === 'OggS' ? oggLength(voice) : amrLength(voice);
  return ms === null || !Number.isFinite(ms) || ms <= 0 ? null : Math.ceil(ms);
}

/** The last page tells how many samples there are up to its end. */
function oggLength(voice: Buffer): number | null {
  const from = Math.max(0, voice.length - LAST_PAGE);
  const page = voice.lastIndexOf('OggS', undefined, 'latin1');
  if (page < from || page + GRANULE + 8 > voice.length) return null;
  return (Number(voice.readBigInt64LE(page + GRANULE)) / OPUS_HZ) * 1000;
}

function amrLength(voice: Buffer): number | null {
  if (voice.subarray(0, AMR_BEGIN.length).toString('latin1') !== AMR_BEGIN) return null;
  let frames = 0;
  for (let at = AMR_BEGIN.length; at < voice.length; frames += 1) {
    at += 1 + (AMR_BYTES[((voice[at] ?? 0) >> 3) & 15] ?? 0);
  }
  return frames * AMR_FRAME_MS;
}
