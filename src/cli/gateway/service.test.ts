import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { serviceName, supervisorOf } from './service.ts';
import { launchdAgent, type ServiceFacts, systemdUnit } from './service-files.ts';

const FACTS: ServiceFacts = {
  command: ['/opt/node/bin/node', '/opt/moirai/bin/moirai.js', 'gateway', 'run', '--supervised'],
  home: '/home/ada/.moirai',
  log: '/home/ada/.moirai/logs/gateway.log',
  stopSeconds: 75,
  name: 'moirai',
};
const ODD = `/tmp/it's 100% "odd" \\ $HOME <&>\tü`;

test('a systemd unit starts it again after a crash or on its wish, and lets it drain', () => {
  expect(systemdUnit(FACTS)).toBe(`# Written by \`moirai gateway install\`; \`moirai gateway uninstall\` removes it.
[Unit]
Description=Moirai gateway

[Service]
Type=exec
ExecStart=":/opt/node/bin/node" "/opt/moirai/bin/moirai.js" "gateway" "run" "--supervised"
ExecReload=/bin/kill -HUP $MAINPID
Environment="MOIRAI_HOME=/home/ada/.moirai"
UMask=0077
Restart=on-failure
RestartSec=1
SuccessExitStatus=0
RestartForceExitStatus=75
RestartPreventExitStatus=78
KillMode=mixed
TimeoutStopSec=75

[Install]
WantedBy=default.target
`);
});

test('a systemd unit keeps odd paths as they are', () => {
  const unit = systemdUnit({ ...FACTS, command: ['/a b/node', ODD], home: ODD });
  const odd = `/tmp/it's 100%% \\"odd\\" \\\\ $HOME <&>\\tü`;
  expect(unit).toContain(`\nExecStart=":/a b/node" "${odd}"\n`);
  expect(unit).toContain(`\nEnvironment="MOIRAI_HOME=${odd}"\n`);
  expect(systemdUnit({ ...FACTS, command: [ODD, 'run'] })).toContain(
    `\nExecStart=":/bin/sh" "-c" "exec \\"$0\\" \\"$@\\"" "${odd}" "run"\n`,
  );
});

test.skipIf(!hasSystemd())('systemd itself has nothing to say against such units', () => {
  const folder = mkdtempSync(join(tmpdir(), 'moirai-unit-'));
  try {
    const bin = join(folder, 'no de 100% $HOME');
    mkdirSync(bin);
    symlinkSync('/bin/true', join(bin, 'node'));
    for (const command of [[join(bin, 'node'), ODD], [ODD]]) {
      const unit = join(folder, 'moirai.service');
      writeFileSync(unit, systemdUnit({ ...FACTS, command, home: ODD }));
      const env = { ...process.env, XDG_RUNTIME_DIR: folder };
      const { status, stderr } = spawnSync('systemd-analyze', ['--user', 'verify', unit], { env, encoding: 'utf8' });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a launch agent starts it again unless it ended well, and lets it drain', () => {
  const agent = launchdAgent(FACTS);
  expect(agent).toContain(`  <key>ProgramArguments</key>
  <array>
    <string>/opt/node/bin/node</string>
    <string>/opt/moirai/bin/moirai.js</string>
    <string>gateway</string>
    <string>run</string>
    <string>--supervised</string>
  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>MOIRAI_HOME</key>
    <string>/home/ada/.moirai</string>
  </dict>`);
  expect(agent).toContain('<key>SuccessfulExit</key>\n    <false/>');
  expect(agent).toContain('<key>ExitTimeOut</key>\n  <integer>75</integer>');
});

test('a launch agent keeps odd paths as they are, and refuses what XML cannot hold', () => {
  expect(launchdAgent({ ...FACTS, home: ODD })).toContain(
    `<string>/tmp/it's 100% "odd" \\ $HOME &lt;&amp;&gt;\tü</string>`,
  );
  expect(() => launchdAgent({ ...FACTS, home: '/tmp/\u0007' })).toThrow(/launchd cannot be told/);
});

test('a service has a plain name, and a supervisor that is known', () => {
  expect(serviceName('moirai-2.test')).toBe('moirai-2.test');
  for (const name of ['', '../x', 'a b', '-x']) expect(() => serviceName(name)).toThrow(/--name is/);
  expect(() => supervisorOf('win32')).toThrow(/no service to write on win32/);
  expect(supervisorOf('darwin').afterInstall('moirai', `/a b/it's`)).toEqual([
    `launchctl bootstrap gui/$(id -u) '/a b/it'\\''s'`,
  ]);
});

function hasSystemd(): boolean {
  try {
    execFileSync('systemd-analyze', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false; // Not here: the texts are compared above.
  }
}
