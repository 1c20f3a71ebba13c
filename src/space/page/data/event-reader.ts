/**
 * Reads server-sent events as they come. A comment is given as null, since it proves that somebody is there. What is
 * cut off in the middle is not given at all. `heard` is called for every piece, also in the middle of a long event.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>, heard: () => void = () => undefined) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      const piece = decoder.decode(value, { stream: true });
      pieces.push(piece);
      // An event of megabytes comes in hundreds of pieces; only one with a line end can finish it.
      if (!piece.includes('\n')) continue;
      const blocks = pieces.join('').replace(/\r\n/g, '\n').split('\n\n');
      pieces = [blocks.pop() ?? ''];
      for (const block of blocks) yield readBlock(block);
    }
  } finally {
    // Also when the reader stops early: the connection must not stay open.
    await reader.cancel().catch(() => undefined);
  }
}

/** One server-sent event; null for a comment. */
export type ServerEvent = ReturnType<typeof readBlock>;

function readBlock(block: string) {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
  }
  return data.length === 0 ? null : { event, data: data.join('\n') };
}
