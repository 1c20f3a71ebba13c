/**
 * The words of an answer without the mail that it quotes: the conversation knows what was said before. Where somebody
 * answers between the lines, `[...]` stands for what was quoted there. Linear in the length of the text.
 */
export function withoutQuotes(text: string): string {
  const lines = text.split('\n');
  const end = quotedRest(lines);
  const kept: string[] = [];
  let isGap = false;
  for (let at = 0; at < end; at += 1) {
    const line = lines[at] ?? '';
    const attribution = attributionAt(lines, at);
    if (isQuoted(line)) isGap = true;
    else if (attribution > 0) {
      isGap = true;
      at += attribution - 1;
    } else if (line.trim() === '' && isGap) continue;
    else {
      if (isGap && kept.some((each) => each.trim() !== '')) kept.push('[...]');
      isGap = false;
      kept.push(line);
    }
  }
  // Some programs draw a line above what they quote.
  while (end < lines.length && /^\s*(?:[-_=]{3,}\s*)?$/.test(kept.at(-1) ?? 'none')) kept.pop();
  return kept.join('\n').trim();
}

/** The words without the signature, which begins behind a line of two dashes. */
export function withoutSignature(text: string): string {
  const lines = text.split('\n');
  const at = lines.findLastIndex((line) => line === '-- ' || line === '--');
  return at < 0 || lines.length - at > LONGEST_SIGNATURE ? text : lines.slice(0, at).join('\n').trimEnd();
}

/** A mail that is passed on says something with what it quotes. */
export function isForward(subject: string | null, text: string): boolean {
  return FORWARDED_SUBJECT.test(subject ?? '') || text.split('\n').some((line) => FORWARDED_LINE.test(line.trim()));
}

const LONGEST_SIGNATURE = 16;
const LONGEST_LINE = 1000;
const FORWARDED_SUBJECT = /^(?:fwd?|wg|tr|rv|enc|doorst|vs|vb|i|pd|转发|轉寄)\s?[:：]/i;
const FORWARDED_LINE =
  /^(?:-{2,} ?(?:Forwarded|Weitergeleitete|Message transf|Mensaje reenviado|Messaggio inoltrato)|Begin forwarded message)/i;

function isQuoted(line: string): boolean {
  return /^ {0,3}>/.test(line);
}

/** Where a quote begins that goes to the end and has no mark at its lines; the number of lines where there is none. */
function quotedRest(lines: readonly string[]): number {
  for (let at = 0; at < lines.length; at += 1) {
    const line = (lines[at] ?? '').trim();
    if (ORIGINAL.test(line) || (/^_{10,}$/.test(line) && isHeaderBlock(lines, at + 1))) return at;
    if (isHeaderBlock(lines, at)) return at;
    const length = attributionAt(lines, at);
    if (length > 0 && !isQuoted(nextLine(lines, at + length))) return at;
  }
  return lines.length;
}

const ORIGINAL =
  /^-{3,} ?(?:Original Message|Urspr(?:ü|ue)ngliche Nachricht|Message d'origine|Mensaje original|Mensagem original|Messaggio originale|Oorspronkelijk bericht|Opprinnelig melding|Ursprungligt meddelande|Oprindelig meddelelse|原始邮件|原始郵件|元のメッセージ|원본 메시지) ?-{3,}$/i;

function nextLine(lines: readonly string[], from: number): string {
  let at = from;
  while (at < lines.length && (lines[at] ?? '').trim() === '') at += 1;
  return lines[at] ?? '';
}

const SENDER = /^\*?(?:From|Von|De|Da|Van|Fra|Från|Od|发件人|寄件者|差出人|보낸 사람) ?[:：]/i;
const OTHER_FIELDS =
  /^\*?(?:Sent|Date|To|Cc|Subject|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|Enviado(?: el)?|Fecha|Para|Asunto|Data|Assunto|Inviato|A|Oggetto|Verzonden|Aan|Onderwerp|Sendt|Til|Emne|Skickat|Till|Ämne|Wysłano|Do|Temat|发送时间|收件人|主题|送信日時|宛先|件名|보낸 날짜|받는 사람|제목) ?[:：]/i;

/** The header that Outlook puts above what it quotes. */
function isHeaderBlock(lines: readonly string[], at: number): boolean {
  if (!SENDER.test((lines[at] ?? '').slice(0, 40).trim())) return false;
  const others = lines.slice(at + 1, at + 7).filter((line) => OTHER_FIELDS.test(line.slice(0, 40).trim()));
  return others.length >= 2;
}

const WROTE =
  /(?:\bwrote|\bschrieb|a écrit|\bescribió|\bescreveu|ha scritto|\bschreef|\bskrev|\bnapisał(?:a|\(a\))?|\bkirjoitti|\bnapsala?|пишет|написала?|写道|寫道|のメール|작성|님이)/i;

/** How many lines say who wrote when what is quoted below; 0 for none. Programs break them at 76 signs. */
function attributionAt(lines: readonly string[], at: number): number {
  let words = '';
  for (let length = 1; length <= 3; length += 1) {
    const line = lines[at + length - 1]?.trim() ?? '';
    if (line === '' || line.length > LONGEST_LINE || isQuoted(line)) return 0;
    words = `${words} ${line}`;
    if (!/[:：]$/.test(line)) continue;
    const isJapanese = /\d{4}年\d{1,2}月\d{1,2}日/.test(words) && /<[^<>]{3,320}>[:：]$/.test(words);
    if (!/\d/.test(words) || !(WROTE.test(words) || isJapanese)) return 0;
    // People begin sentences like this, too: where no quote follows, only a time or an address shows a program.
    const isOfProgram = isQuoted(nextLine(lines, at + length)) || /\d{1,2}[:.h]\d{2}|[\w.+-]@[\w-]/.test(words);
    return isOfProgram ? length : 0;
  }
  return 0;
}
