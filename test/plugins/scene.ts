import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DispatchQuestion, ToolQuestion, TurnQuestion } from '../../src/extensions/plugins/api.ts';
import { Plugins, type PluginsOptions } from '../../src/extensions/plugins/plugins.ts';
import type { ResetRules } from '../../src/lifecycle/reset-policy.ts';
import { Scene as HookScene, until } from '../hooks/scene.ts';

export { until };

/** A home with plugins in it, a real store, and a dispatcher that serves them. */
export class Scene {
  readonly base: HookScene;
  plugins: Plugins | null = null;

  private constructor(base: HookScene) {
    this.base = base;
  }

  static async open(rules?: ResetRules): Promise<Scene> {
    return new Scene(await HookScene.open(rules));
  }

  get home(): string {
    return this.base.home;
  }

  /** What the log has, as text. */
  get logged(): string {
    return this.base.logged.join('');
  }

  /** Puts a plugin's files in its folder; the body of its `setup` is enough. */
  plugin(name: string, setup: string, manifest = '', more: Record<string, string> = {}): void {
    const folder = join(this.home, 'plugins', name);
    mkdirSync(folder, { recursive: true });
    const files = { 'plugin.yaml': manifest, 'index.ts': moduleWith(setup), ...more };
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  }

  get options(): PluginsOptions {
    return {
      ...{ home: this.home, host: this.base.host, dispatcher: this.base.dispatcher, store: this.base.opened.store },
      ...{ log: this.base.log, environment: { ...process.env, HOME: this.home }, maxAttempts: 3, timeoutMs: 10_000 },
    };
  }

  /** Resolves when every plugin was loaded or refused. */
  async start(options: Partial<PluginsOptions> = {}): Promise<Plugins> {
    this.plugins = await Plugins.start({ ...this.options, ...options });
    await this.plugins.reload();
    return this.plugins;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
  lines(file: string): any[] {
    return this.base.lines(file);
  }

  async close(): Promise<void> {
    await this.plugins?.stop();
    await this.base.close();
  }
}

/** A module in TypeScript whose `setup` has a `note(file, value)` that writes to a file of the home. */
function moduleWith(setup: string): string {
  return `import { appendFileSync } from 'node:fs';
import { definePlugin, type PluginContext, Unavailable } from 'moirai';
void Unavailable;
export default definePlugin({
  async setup(ctx: PluginContext) {
    const note = (file: string, value: unknown) =>
      appendFileSync(\`\${ctx.home}/\${file}\`, \`\${JSON.stringify(value)}\\n\`);
    void note;
    ${setup}
  },
});
`;
}

const PERSON = { platform: 'telegram', user_id: 'user-1' };
const KEY = 'agent:main:telegram:dm:1';

export const MESSAGE: DispatchQuestion = { ...PERSON, text: 'hi', session_key: KEY, kind: 'chat' };

export const TOOL_CALL: ToolQuestion = {
  ...{
    ...PERSON,
    session_id: 'ses_1',
    turn_id: 'trn_1',
    tool: 'shell',
    args: { command: 'ls' },
    tool_call_id: 'call_1',
  },
};

export const TURN: TurnQuestion = {
  ...{ ...PERSON, session_id: 'ses_1', session_key: KEY, turn_id: 'trn_1', text: 'hi', model: 'some' },
};
