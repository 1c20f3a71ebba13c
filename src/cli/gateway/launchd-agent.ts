import { MoiraiError } from '../../errors/moirai-error.ts';
import { MARK, type ServiceFacts } from './service-facts.ts';

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
