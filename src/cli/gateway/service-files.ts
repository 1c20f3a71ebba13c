import { MoiraiError } from '../../errors/moirai-error.ts';

/** What a supervisor has to know to run the gateway of a home. */
export interface ServiceFacts {
  /** The program and its arguments, absolute. */
  readonly command: readonly string[];
  readonly home: string;
  readonly log: string;
  /** How long stopping may take. */
  readonly stopSeconds: number;
  readonly name: string;
}

/** Tells our files from others: nothing else is overwritten or removed. */
export const MARK = 'Written by `moirai gateway install`';

/** A user unit that runs the gateway, starts it again when it crashed or asked for it, and lets it drain. */
export function systemdUnit({ command, home, stopSeconds }: ServiceFacts): string {
  const [program = '', ...args] = startable(command);
  // The colon keeps systemd from replacing variables: a path may have a dollar in it.
  const words = [quoted(`:${program}`), ...args.map(quoted)];
  return `# ${MARK}; \`moirai gateway uninstall\` removes it.
[Unit]
Description=Moirai gateway

[Service]
Type=exec
ExecStart=${words.join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Environment=${quoted(`MOIRAI_HOME=${home}`)}
UMask=0077
Restart=on-failure
RestartSec=1
SuccessExitStatus=0
RestartForceExitStatus=75
RestartPreventExitStatus=78
KillMode=mixed
TimeoutStopSec=${stopSeconds}

[Install]
WantedBy=default.target
`;
}

/** systemd starts no program with quotes or backslashes in its path, however they are escaped; a shell does. */
function startable(command: readonly string[]): readonly string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are refused too
  return /["'\\\u0000-\u001f\u007f]/.test(command[0] ?? '') ? ['/bin/sh', '-c', 'exec "$0" "$@"', ...command] : command;
}

const ESCAPED: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '%': '%%', '\n': '\\n', '\t': '\\t' };

/** One word as systemd reads it back: quoted, C escapes, and per cent signs that are no specifiers. */
function quoted(word: string): string {
  const hex = (character: string): string => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to be escaped
  return `"${word.replace(/["\\%\u0000-\u001f\u007f]/g, (character) => ESCAPED[character] ?? hex(character))}"`;
}

/** A launch agent that runs the gateway from login on, and starts it again unless it ended well. */
export function launchdAgent({ command, home, log, stopSeconds, name }: ServiceFacts): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ${MARK}; \`moirai gateway uninstall\` removes it. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  ${text(name)}
  <key>ProgramArguments</key>
  <array>
${command.map((word) => `    ${text(word)}`).join('\n')}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>MOIRAI_HOME</key>
    ${text(home)}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>${stopSeconds}</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardOutPath</key>
  ${text(log)}
  <key>StandardErrorPath</key>
  ${text(log)}
</dict>
</plist>
`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

function text(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML cannot hold them, however they are written
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(value)) {
    throw new MoiraiError('bad_input', `launchd cannot be told of the path ${JSON.stringify(value)}`);
  }
  return `<string>${value.replace(/[&<>]/g, (character) => ENTITIES[character] ?? character)}</string>`;
}
