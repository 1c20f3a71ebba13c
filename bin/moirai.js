#!/usr/bin/env node
// Starts Moirai on a Node that can run it. This file must parse and run on every Node since 12.17, to be able to say
// what is missing: so it imports nothing before the version is checked, and uses no newer syntax.
//
// In a clone the right Node is a devDependency. An older Node then becomes the outer process of that one: it passes on
// signals and the exit, and holds one end of a pipe, the lifeline. When the outer process is gone, for whatever reason,
// the inner one reads the pipe's end and kills itself, so that killing what one started kills what one meant.

const NEEDED = [24, 15];
const root = new URL('..', import.meta.url);
const lifelineFd = process.env.MOIRAI_LIFELINE_FD;
delete process.env.MOIRAI_LIFELINE_FD; // for this process, not for its children

if (isNewEnough(process.versions.node)) void runHere();
else if (lifelineFd === undefined) runOnBundledNode().catch((error) => refuse(error.message));
else refuse(); // the bundled Node is not what it says it is; do not start it again and again

function isNewEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
}

async function runHere() {
  if (lifelineFd !== undefined) dieWithOuterProcess(await import('node:net'), Number(lifelineFd));
  const { existsSync } = await import('node:fs');
  const { enableCompileCache } = await import('node:module');
  const { fileURLToPath } = await import('node:url');
  // Most of a short command's time goes into taking types out of its source and compiling it, so the result is kept beside the packages:
  // as trustworthy as they are, and where that is not writable it is simply not kept.
  const packages = fileURLToPath(new URL('node_modules', root));
  if (existsSync(packages)) enableCompileCache(`${packages}/.cache/moirai`);
  const built = new URL('dist/cli/main.js', root);
  if (existsSync(built)) return void (await import(built.href));
  await import(new URL('src/cli/main.ts', root).href);
}

function dieWithOuterProcess(net, fd) {
  const die = () => process.kill(process.pid, 'SIGKILL');
  const lifeline = new net.Socket({ fd, readable: true });
  lifeline.on('error', die).on('end', die).on('close', die).resume();
  lifeline.unref();
}

async function runOnBundledNode() {
  const fs = await import('fs');
  const { fileURLToPath } = await import('url');
  const { spawn } = await import('child_process');
  const folder = new URL('node_modules/node/', root);
  const binary = new URL(process.platform === 'win32' ? 'bin/node.exe' : 'bin/node', folder);
  if (!fs.existsSync(binary)) return refuse();
  if (!isNewEnough(JSON.parse(fs.readFileSync(new URL('package.json', folder), 'utf8')).version)) return refuse();

  const args = process.execArgv.concat(fileURLToPath(import.meta.url), process.argv.slice(2));
  const inner = spawn(fileURLToPath(binary), args, {
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    env: Object.assign({}, process.env, { MOIRAI_LIFELINE_FD: '3' }),
  });
  inner.on('error', (error) => refuse(error.message));
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']) {
    process.on(signal, () => inner.kill(signal));
  }
  inner.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    setTimeout(() => process.exit(1), 1000); // a signal that does not kill this Node
  });
}

function refuse(reason = '') {
  const lines = [
    `moirai needs Node.js ${NEEDED.join('.')} or newer; this is ${process.versions.node} (${process.execPath}).`,
    'Install a newer Node.js, or let npm bring one along:',
    '',
    '    npx -y -p node@24 -p moirai moirai',
    '',
  ];
  if (reason !== '') lines.unshift(`The Node.js beside moirai did not start: ${reason}`);
  process.stderr.write(lines.join('\n'));
  process.exitCode = 1;
}
