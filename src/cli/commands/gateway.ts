import { type Command, Option } from 'commander';
import { answer } from '../command.ts';
import { drain, restart, start, stop, undrain } from '../gateway/control.ts';
import { READY_MS } from '../gateway/launch.ts';
import type { RunOptions } from '../gateway/run-options.ts';
import { install, serviceName, uninstall } from '../gateway/service.ts';
import { status } from '../gateway/status.ts';
import { whole } from '../options.ts';

const port = whole('--port', 0, 65_535);

export function define(group: Command): void {
  group
    .command('run')
    .summary('run it in the foreground')
    .description('Runs the gateway in the foreground: web chat, HTTP, and the platforms of the configuration.')
    .option('--supervised', 'whoever runs this starts it again when it exits with 75')
    .option('--port <port>', 'listen there instead of at gateway.port; 0 takes any free port', port)
    .option('--replace', 'stop the gateway that runs in this home first, as `gateway stop` does')
    .option('--open', 'show the web chat in a browser once it is ready')
    .addOption(new Option('--detached', 'started by `gateway start`').hideHelp())
    .addHelpText('after', SIGNALS)
    .action(
      answer(async (settings, options: RunOptions & { supervised?: boolean; detached?: boolean }) => {
        const { runGateway } = await import('../gateway/run-gateway.ts');
        return runGateway(settings, options.supervised ? 'supervisor' : options.detached ? 'start' : 'person', options);
      }),
    );
  group
    .command('start')
    .summary('start it in the background')
    .description('Starts the gateway in the background and waits until it is ready.')
    .addHelpText('after', START_NOTE)
    .action(answer(start));
  group
    .command('stop')
    .summary('let it finish and stop')
    .description('Stops the gateway: running turns may finish within gateway.drain_timeout, the rest goes on later.')
    .option('--now', 'interrupt running turns at once; the next start goes on with them')
    .action(answer(stop));
  group
    .command('restart')
    .summary('stop it and start it again')
    .description('Stops the gateway as `stop` does and starts it again. Sessions go on where they were.')
    .option('--now', 'interrupt running turns at once; they go on after the start')
    .addHelpText('after', RESTART_NOTE)
    .action(answer(restart));
  group
    .command('status')
    .summary('whether it runs, and how it stands')
    .description('Says whether the gateway runs, where, and how it stands.')
    .addHelpText('after', '\nExit codes: 0 it runs, also while it drains or does not answer; 3 it does not.')
    .action(answer(status));
  defineRest(group);
}

const SIGNALS = `
SIGTERM and SIGINT let running turns finish; a second one interrupts them at once. SIGHUP reads the configuration again.
SIGUSR1 stops it with exit code 75, to be started again.`;

const START_NOTE = `
What it says goes to <home>/logs/gateway.log. When it ends before it is ready, the end of that is shown and the command
exits with the same code. It is waited for ${READY_MS / 1000} s.`;

const RESTART_NOTE = `
A gateway under a supervisor is started again by that one, and a gateway from a terminal in the background. Where none
runs, one is started. A configuration that is wrong is told, and the gateway left as it is.`;

function defineRest(group: Command): void {
  group
    .command('drain')
    .summary('take no new messages')
    .description('Lets the gateway finish what runs and take no new messages, without stopping it.')
    .addHelpText(
      'after',
      '\n`moirai gateway undrain` lets it take messages again; `moirai gateway status` shows what runs.',
    )
    .action(answer(drain));
  group
    .command('undrain')
    .summary('take messages again')
    .description('Lets a draining gateway take messages again.')
    .action(answer(undrain));
  group
    .command('install')
    .summary('write a service for systemd or launchd')
    .description('Writes a service for this home: a systemd user unit, or a launchd agent on macOS.')
    .option('--print', 'show it and write nothing')
    .option(...SERVICE_NAME)
    .addHelpText('after', INSTALL_NOTE)
    .action(answer(install));
  group
    .command('uninstall')
    .summary('remove that service')
    .description('Removes the service that `install` wrote. What is kept in the home stays.')
    .option('--print', 'show what would be removed and remove nothing')
    .option(...SERVICE_NAME)
    .action(answer(uninstall));
}

const SERVICE_NAME = ['--name <name>', 'the name of the service', serviceName, 'moirai'] as const;

const INSTALL_NOTE = `
The service starts the gateway at login, and again when it crashed or exits with 75. It does not see the variables of
your shell: keys and tokens belong into <home>/.env.`;
