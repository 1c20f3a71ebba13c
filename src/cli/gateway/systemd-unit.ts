import { MARK, type ServiceFacts } from './service-facts.ts';

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
