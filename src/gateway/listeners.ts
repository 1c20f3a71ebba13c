import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import type { Dispatcher } from '../events/dispatcher.ts';
import { FileHooks } from '../extensions/hooks/file-hooks.ts';
import type { ExtensionHost } from '../extensions/host/extension-host.ts';
import { webhookSubscriber } from '../extensions/webhooks/webhook.ts';
import type { ResetRules } from '../lifecycle/reset-policy.ts';
import type { Logger } from '../log/logger.ts';
import { type EndedHandlers, noticesSubscriber } from '../outbound/notices.ts';

export interface ListenersDeps {
  readonly config: Config;
  readonly engine: Engine;
  readonly dispatcher: Dispatcher;
  readonly extensions: ExtensionHost;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly rules: () => ResetRules;
  /** Tells what came of sessions that worked for somebody else, by their kind. */
  readonly ended: EndedHandlers;
}

/** Everybody in this process who reads the log: notices to people, the home's hooks, webhooks. */
export class Listeners {
  readonly #hooks: FileHooks;

  private constructor(hooks: FileHooks) {
    this.#hooks = hooks;
  }

  static async start(deps: ListenersDeps): Promise<Listeners> {
    const { config, engine, dispatcher, extensions: host, log, environment, rules, ended } = deps;
    await dispatcher.subscribe(noticesSubscriber(engine, rules, ended));
    const { home, hooks } = config;
    const { maxAttempts, timeoutMs } = hooks;
    const fileHooks = await FileHooks.start({
      ...{ home, host, dispatcher, store: engine.store, log, environment, maxAttempts, timeoutMs },
    });
    for (const webhook of hooks.webhooks) {
      await dispatcher.subscribe(webhookSubscriber(webhook, { ...hooks, log }));
    }
    return new Listeners(fileHooks);
  }

  /** After the dispatcher has stopped: nothing is handed to them any more. */
  stop(): Promise<void> {
    return this.#hooks.stop();
  }
}
