import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import { parseMime, quoted, sectionOf, structureOf } from './mime-tree.ts';

export interface StoredMail {
  readonly uid: number;
  readonly raw: Buffer;
  readonly at: Date;
  readonly flags: Set<string>;
}

/** A folder of the one mailbox there is. */
export class Folder {
  readonly name: string;
  readonly use: string | null;
  mails: StoredMail[] = [];
  validity = 1000;
  #nextUid = 1;

  constructor(name: string, use: string | null = null) {
    this.name = name;
    this.use = use;
  }

  get nextUid(): number {
    return this.#nextUid;
  }

  add(raw: Buffer, flags: readonly string[] = []): StoredMail {
    const mail = { uid: this.#nextUid++, raw, at: new Date(), flags: new Set(flags) };
    this.mails = [...this.mails, mail];
    return mail;
  }

  /** The same mails under other numbers, as after a mailbox was copied from a backup. */
  renumber(): void {
    this.validity += 1;
    this.#nextUid = 5;
    this.mails = this.mails.map((mail) => ({ ...mail, uid: this.#nextUid++ }));
  }
}

interface Login {
  readonly user: string;
  readonly password: string;
}

/** How its connections are encrypted: from their beginning, or once the client asks for it. */
export interface ImapEncryption {
  readonly from: 'tls' | 'starttls';
  readonly context: SecureContext;
}

interface ImapOptions {
  readonly idle?: boolean;
  readonly encryption?: ImapEncryption;
}

/** An IMAP4rev1 server on loopback, of one mailbox: as much of the protocol as a mail client needs to read it. */
export class ImapServer {
  readonly folders = [new Folder('INBOX'), new Folder('Sent', '\\Sent')];
  /** Every command that came, without its tag. */
  readonly commands: string[] = [];
  /**
   * Called before a mail is given out, with what is wanted of it: the server may refuse that, with a code, or end the
   * connection over it.
   */
  trouble: (mail: StoredMail, wanted: string) => `NO [${string}]` | 'cut' | null = () => null;
  readonly #login: () => Login;
  readonly #server: Server;
  readonly #sessions = new Set<ImapSession>();
  /** Without it the client has to ask. */
  readonly idle: boolean;
  readonly encryption: ImapEncryption | null;

  private constructor(login: () => Login, { idle = true, encryption }: ImapOptions) {
    this.#login = login;
    this.idle = idle;
    this.encryption = encryption ?? null;
    this.#server = createServer((socket) => {
      const session = new ImapSession(socket, this);
      this.#sessions.add(session);
      socket.on('close', () => this.#sessions.delete(session));
    });
  }

  static async start(login: () => Login, options: ImapOptions = {}): Promise<ImapServer> {
    const imap = new ImapServer(login, options);
    await new Promise<void>((resolve) => imap.#server.listen(0, '127.0.0.1', resolve));
    return imap;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get inbox(): Folder {
    return this.folder('INBOX')!;
  }

  /** How many clients are told at once when something comes. */
  get listeners(): number {
    return [...this.#sessions].filter((session) => session.idles).length;
  }

  folder(name: string): Folder | null {
    return this.folders.find((each) => each.name === name) ?? null;
  }

  knows(user: string, password: string): boolean {
    const login = this.#login();
    return login.user === user && login.password === password;
  }

  /** A mail arrives in a folder; who waits for it is told. */
  deliver(raw: Buffer, folder = this.inbox, flags: readonly string[] = []): StoredMail {
    const mail = folder.add(raw, flags);
    for (const session of this.#sessions) session.tell(folder);
    return mail;
  }

  /** Ends waiting, as some servers do after a while; the connections stay. */
  endIdle(): void {
    for (const session of this.#sessions) session.endIdle();
  }

  /** Cuts every connection. */
  cut(): void {
    for (const session of this.#sessions) session.end();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** The words of a command: atoms, strings, and lists of them. */
type Word = string | readonly Word[];

class ImapSession {
  #socket: Socket;
  readonly #server: ImapServer;
  #buffer = Buffer.alloc(0);
  #user = false;
  #folder: Folder | null = null;
  /** What the client knows of the folder, so that its numbers stay those that it has. */
  #known: StoredMail[] = [];
  #idling: string | null = null;

  constructor(socket: Socket, server: ImapServer) {
    this.#socket = socket;
    this.#server = server;
    socket.setNoDelay(true);
    if (server.encryption?.from === 'tls') this.#encrypt(server.encryption);
    else this.#listen();
    this.#send(`* OK [CAPABILITY ${this.#capabilities}] ready`);
  }

  get idles(): boolean {
    return this.#idling !== null;
  }

  #listen(): void {
    this.#socket.on('error', () => undefined);
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk));
  }

  #encrypt({ context }: ImapEncryption): void {
    this.#socket.removeAllListeners('data');
    this.#socket = new TLSSocket(this.#socket, { isServer: true, secureContext: context });
    this.#listen();
  }

  end(): void {
    this.#socket.destroy();
  }

  endIdle(): void {
    if (this.#idling === null) return;
    this.#send(`${this.#idling} OK that was long enough`);
    this.#idling = null;
  }

  tell(folder: Folder): void {
    if (this.#folder === folder && this.idles) this.#update();
  }

  #read(chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    for (;;) {
      const command = this.#nextCommand();
      if (command === null) return;
      this.#answer(command);
    }
  }

  /** A whole command with the literals in it; null while it is not there yet. */
  #nextCommand(): string | null {
    let from = 0;
    for (;;) {
      const end = this.#buffer.indexOf('\r\n', from);
      if (end < 0) return null;
      const [, bytes, sync] = /\{(\d+)(\+?)\}$/.exec(this.#buffer.subarray(from, end).toString('latin1')) ?? [];
      if (bytes === undefined) {
        const command = this.#buffer.subarray(0, end).toString('latin1');
        this.#buffer = this.#buffer.subarray(end + 2);
        return command;
      }
      const behind = end + 2 + Number(bytes);
      if (this.#buffer.length < behind) {
        if (sync === '' && this.#buffer.length === end + 2) this.#send('+ go on');
        return null;
      }
      from = behind;
    }
  }

  #answer(line: string): void {
    if (this.#idling !== null) {
      const tag = this.#idling;
      this.#idling = null;
      this.#send(`${tag} OK idle is over`);
      return;
    }
    const [tag = '*', name = '', ...words] = readWords(line) as [string, string, ...Word[]];
    const isUid = String(name).toUpperCase() === 'UID';
    const command = (isUid ? `UID ${String(words.shift()).toUpperCase()}` : String(name).toUpperCase()) as string;
    this.#server.commands.push(`${command} ${command === 'LOGIN' ? '' : JSON.stringify(words)}`);
    const open = this.#user || ['CAPABILITY', 'STARTTLS', 'LOGIN', 'LOGOUT', 'NOOP', 'ID'].includes(command);
    const result = open ? this.#perform(command, words, tag) : 'BAD log in first';
    if (result !== null) this.#send(`${tag} ${result}`);
    if (command === 'LOGOUT') this.#socket.end();
  }

  #perform(command: string, words: Word[], tag: string): string | null {
    switch (command) {
      case 'CAPABILITY':
        this.#send(`* CAPABILITY ${this.#capabilities}`);
        return 'OK';
      case 'STARTTLS':
        if (!this.#mayEncrypt) return 'BAD not known';
        this.#send(`${tag} OK begin`);
        this.#encrypt(this.#server.encryption!);
        return null;
      case 'LOGIN':
        this.#user = this.#server.knows(String(words[0]), String(words[1]));
        return this.#user ? 'OK welcome' : 'NO [AUTHENTICATIONFAILED] wrong user or password';
      case 'LOGOUT':
        this.#send('* BYE');
        return 'OK';
      case 'NOOP':
        this.#update();
        return 'OK';
      case 'LIST':
      case 'LSUB':
        return this.#list(command, String(words[1]));
      case 'SELECT':
      case 'EXAMINE':
        return this.#select(String(words[0]), command === 'EXAMINE');
      case 'IDLE':
        this.#idling = tag;
        this.#send('+ idling');
        this.#update();
        return null;
      default:
        return this.#folder === null ? 'BAD select a mailbox first' : this.#inFolder(command, words, this.#folder);
    }
  }

  get #capabilities(): string {
    const more = `${this.#server.idle ? ' IDLE' : ''}${this.#mayEncrypt ? ' STARTTLS' : ''}`;
    return `IMAP4rev1 UIDPLUS MOVE SPECIAL-USE${more}`;
  }

  get #mayEncrypt(): boolean {
    return this.#server.encryption?.from === 'starttls' && !(this.#socket instanceof TLSSocket);
  }

  #inFolder(command: string, words: Word[], folder: Folder): string {
    this.#update();
    const byUid = command.startsWith('UID ');
    switch (command.replace('UID ', '')) {
      case 'FETCH': {
        const wanted = listOf(words[1]);
        for (const mail of this.#range(String(words[0]), byUid)) {
          const trouble = this.#server.trouble(mail, wanted.join(' '));
          if (trouble === 'cut') this.end();
          if (trouble !== null) return `${trouble} the mail cannot be read`;
          this.#fetch(mail, wanted);
        }
        return 'OK';
      }
      case 'SEARCH':
        this.#send(
          `* SEARCH ${this.#search(words)
            .map((mail) => this.#numberOf(mail, byUid))
            .join(' ')}`.trimEnd(),
        );
        return 'OK';
      case 'STORE':
        for (const mail of this.#range(String(words[0]), byUid)) this.#store(mail, String(words[1]), listOf(words[2]));
        return 'OK';
      case 'MOVE': {
        const to = this.#server.folder(String(words[1]));
        if (to === null) return 'NO [TRYCREATE] no such mailbox';
        for (const mail of this.#range(String(words[0]), byUid)) {
          to.add(mail.raw, [...mail.flags]);
          folder.mails = folder.mails.filter((each) => each !== mail);
          this.#send(`* ${this.#known.indexOf(mail) + 1} EXPUNGE`);
          this.#known = this.#known.filter((each) => each !== mail);
        }
        return 'OK';
      }
      default:
        return 'BAD not known';
    }
  }

  #list(command: string, pattern: string): string {
    for (const { name, use } of this.#server.folders) {
      if (pattern !== '*' && pattern !== '%' && pattern.toUpperCase() !== name.toUpperCase()) continue;
      this.#send(`* ${command} (\\HasNoChildren${use === null ? '' : ` ${use}`}) "/" ${quoted(name)}`);
    }
    return 'OK';
  }

  #select(name: string, readOnly: boolean): string {
    const folder = this.#server.folder(name);
    if (folder === null) return 'NO [NONEXISTENT] no such mailbox';
    this.#folder = folder;
    this.#known = folder.mails;
    this.#send('* FLAGS (\\Answered \\Flagged \\Deleted \\Seen \\Draft)');
    this.#send('* OK [PERMANENTFLAGS (\\Answered \\Flagged \\Deleted \\Seen \\Draft \\*)]');
    this.#send(`* ${folder.mails.length} EXISTS`);
    this.#send('* 0 RECENT');
    this.#send(`* OK [UIDVALIDITY ${folder.validity}]`);
    this.#send(`* OK [UIDNEXT ${folder.nextUid}]`);
    return `OK [${readOnly ? 'READ-ONLY' : 'READ-WRITE'}]`;
  }

  /** Tells what has come and gone since. */
  #update(): void {
    if (this.#folder === null) return;
    const { mails } = this.#folder;
    const there = new Set(mails.map(({ uid }) => uid));
    const gone = [...this.#known.keys()].filter((at) => !there.has(this.#known[at]!.uid));
    for (const at of gone.reverse()) this.#send(`* ${at + 1} EXPUNGE`);
    const before = this.#known.length - gone.length;
    this.#known = mails;
    if (mails.length !== before) this.#send(`* ${mails.length} EXISTS`);
  }

  #numberOf(mail: StoredMail, byUid: boolean): number {
    return byUid ? mail.uid : this.#known.indexOf(mail) + 1;
  }

  #range(range: string, byUid: boolean): StoredMail[] {
    const newest = byUid ? (this.#known.at(-1)?.uid ?? 0) : this.#known.length;
    const numberIn = (text: string): number => (text === '*' ? newest : Number(text));
    const bounds = range.split(',').map((each) => {
      const [from = '', to = from] = each.split(':');
      return [numberIn(from), numberIn(to)].sort((a, b) => a - b) as [number, number];
    });
    return this.#known.filter((mail) => {
      const number = this.#numberOf(mail, byUid);
      return bounds.some(([from, to]) => number >= from && number <= to);
    });
  }

  #search(words: readonly Word[]): StoredMail[] {
    const [key = 'ALL', name = '', value = ''] = words.map(String);
    if (key.toUpperCase() === 'UID') return this.#range(name, true);
    if (key.toUpperCase() !== 'HEADER') return this.#known;
    return this.#known.filter(({ raw }) => {
      return parseMime(raw).fields.get(name.toLowerCase())?.toLowerCase().includes(value.toLowerCase()) === true;
    });
  }

  #store(mail: StoredMail, item: string, flags: readonly Word[]): void {
    for (const flag of flags.map(String)) {
      if (item.startsWith('-')) mail.flags.delete(flag);
      else mail.flags.add(flag);
    }
    this.#send(`* ${this.#known.indexOf(mail) + 1} FETCH (UID ${mail.uid} FLAGS (${[...mail.flags].join(' ')}))`);
  }

  #fetch(mail: StoredMail, items: readonly Word[]): void {
    const answers = items.map((item) => this.#item(mail, String(item)));
    const parts = answers.flatMap((answer, index) => (index === 0 ? answer : [' ', ...answer]));
    const bytes = parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part));
    const head = Buffer.from(`* ${this.#known.indexOf(mail) + 1} FETCH (`);
    this.#socket.write(Buffer.concat([head, ...bytes, Buffer.from(')\r\n')]));
  }

  #item({ uid, flags, at, raw }: StoredMail, item: string): (string | Buffer)[] {
    const [, section, from, count] = /^BODY(?:\.PEEK)?\[([^\]]*)\](?:<(\d+)\.(\d+)>)?$/i.exec(item) ?? [];
    if (section !== undefined) {
      const whole = sectionOf(raw, section);
      const name = `BODY[${section}]${from === undefined ? '' : `<${from}>`}`;
      if (whole === null) return [`${name} NIL`];
      const bytes = from === undefined ? whole : whole.subarray(Number(from), Number(from) + Number(count));
      return [`${name} {${bytes.length}}\r\n`, bytes];
    }
    switch (item.toUpperCase()) {
      case 'UID':
        return [`UID ${uid}`];
      case 'FLAGS':
        return [`FLAGS (${[...flags].join(' ')})`];
      case 'INTERNALDATE':
        return [`INTERNALDATE "${dateOf(at)}"`];
      case 'RFC822.SIZE':
        return [`RFC822.SIZE ${raw.length}`];
      case 'BODYSTRUCTURE':
        return [`BODYSTRUCTURE ${structureOf(parseMime(raw))}`];
      default:
        return [`${item} NIL`];
    }
  }

  #send(line: string): void {
    if (!this.#socket.destroyed) this.#socket.write(Buffer.from(`${line}\r\n`, 'latin1'));
  }
}

function listOf(word: Word | undefined): readonly Word[] {
  return word === undefined ? [] : typeof word === 'string' ? [word] : word;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

function dateOf(at: Date): string {
  const day = String(at.getUTCDate()).padStart(2, ' ');
  return `${day}-${MONTHS[at.getUTCMonth()]}-${at.getUTCFullYear()} ${at.toISOString().slice(11, 19)} +0000`;
}

/** Reads a command: atoms with their brackets, quoted strings, literals, lists. */
function readWords(line: string): Word[] {
  let at = 0;
  const readList = (): Word[] => {
    const words: Word[] = [];
    while (at < line.length && line.charAt(at) !== ')') {
      if (line.charAt(at) === ' ') at += 1;
      else words.push(readWord());
    }
    at += 1;
    return words;
  };
  const readWord = (): Word => {
    if (line.charAt(at) === '(') {
      at += 1;
      return readList();
    }
    if (line.charAt(at) === '"') {
      const [whole = '"'] = /^"(?:[^"\\]|\\.)*"?/.exec(line.slice(at)) ?? [];
      at += whole.length;
      return whole.replace(/^"|"$/g, '').replace(/\\(.)/g, '$1');
    }
    const [literal, bytes] = /^\{(\d+)\+?\}\r\n/.exec(line.slice(at)) ?? [];
    if (literal !== undefined) {
      at += literal.length + Number(bytes);
      return line.slice(at - Number(bytes), at);
    }
    const [atom = ''] = /^(?:[^ ()[\]]|\[[^\]]*\])+/.exec(line.slice(at)) ?? [];
    at += Math.max(1, atom.length);
    return atom;
  };
  return readList();
}
