/**
 * Every error Moirai can throw, in one place: the code is stable and public, the hint says what to do about it.
 * `docs/errors.md` lists the same codes; a test compares the two in both directions.
 */
export const ERROR_HINTS = {
  // what was asked for
  session_not_found: 'List sessions with `moirai sessions list`; an id may be shortened to any unique prefix.',
  session_ambiguous: 'Give more characters of the session id.',
  session_ended: 'An ended session never reopens. Resume it instead: that starts a new session linked to it.',
  session_suspended:
    'An operator parked the session. The message is kept and answered after `moirai sessions release`; read its turn then.',
  session_continued: 'Another session sees its transcript. Delete the sessions that continue it first.',
  session_exists: 'Use a fresh session id; ids are never reused.',
  key_busy: 'The conversation has an open session already; end it first, or write to it.',
  turn_not_found: 'The turn is not in the store; check the id, or read the session with `moirai sessions show`.',
  illegal_move: 'Read the session again: its state changed, or the command does not apply to that state.',
  bad_reason: 'Use one of the end reasons listed in docs/lifecycle.md.',
  bad_key:
    'A session key is agent:<profile>:<platform>:<type>[:...], each part percent-escaped, without control characters.',
  bad_policy: 'Reset modes are none, idle, daily and both; times are HH:MM; time zones are IANA names.',
  bad_duration: 'Durations look like 500ms, 90s, 30m, 24h or 7d.',
  bad_input: 'Correct the value named in the message and try again.',
  message_too_large: 'Send the text in smaller pieces, or as a file.',
  unknown_event: 'Subscribe to an event type of docs/events.md, to a `prefix:*`, or to `*`.',
  subscriber_not_found: 'List subscribers with `moirai doctor --json`.',

  // who may write
  lease_lost:
    'This process was paused or cut off for longer than its lease. It must start again under a new instance id.',
  fenced: 'Another instance took the session over. Drop the work in hand; its result is no longer wanted.',

  // the store
  store_url: 'Use sqlite:<file> or postgres://user:password@host/database.',
  store_not_database: 'The file is not a Moirai database. Move it away, or point store.url at another file.',
  store_corrupt: 'Stop all processes, copy the database files, and restore a backup or run `moirai doctor`.',
  store_newer: 'The database was written by a newer Moirai. Upgrade this installation; nothing was changed.',
  store_read_only: 'Make the database file and its folder writable for this user.',
  store_full: 'Free disk space. Nothing that was acknowledged is lost; the failed write was rolled back.',
  store_locked: 'Another program holds the database. Stop it, or wait and try again.',
  store_unsafe: 'The store cannot keep its promises in this setting; the message says which setting to change.',
  store_unreachable: 'Check that the database server runs and that store.url is right.',
  store_timeout:
    'The database did not answer in time and nothing was changed. Try again; if it stays, look at its load.',
  store_refused:
    'The database server refused it; the message says why. Mend its tables, rights or limits, and try again.',
  store_io:
    'The disk reported an error. Check the disk; the database is opened anew before it is used again, and recovers from its log.',
  store_replaced:
    'Put the database that was open back in its place, with its -wal file; or restart to go on with the one that is there now.',
  store_thread_died: 'A thread of the store died over a request and was started again. Ask again, for less at a time.',
  store_in_use: 'Stop the processes that the message names, then try again; nothing was changed.',
  store_not_empty: 'Add --force to replace the store; what is there now is kept aside.',
  store_closed: 'The store was closed; open it again before use.',
  backup_exists: 'Name another file, or add --force to replace this one.',
  backup_invalid: 'Use a file that `moirai backup` has written; nothing was changed.',
  store_outcome_unknown:
    'The connection broke, or the disk failed, during the commit. Repeat the same command id: it is applied at most once.',

  // subscribers
  subscriber_timeout: 'The subscriber did not answer before its deadline. It will be retried.',
  subscriber_failed: 'The subscriber threw. It will be retried, then kept as a dead letter.',
  subscriber_unavailable: 'The receiver is down. Its conversations wait and catch up when it returns.',

  // hooks
  hook_invalid: 'Correct the folder of the hook as the message says; it is read again as soon as a file changes.',
  hook_not_found: 'List hooks and webhooks with `moirai hooks list`.',

  // plugins
  plugin_invalid: 'Correct the file of the plugin as the message says; it is loaded again as soon as a file changes.',
  plugin_unavailable: 'The process of the plugin is away or busy; nothing was done. It is started again by itself.',
  plugin_failed: 'The plugin threw, or died over the call. The log says more, under the name of the plugin.',
  plugin_timeout: 'The plugin did not answer before its deadline. Make it faster, or give it more time.',

  // memory
  memory_full: 'Shorten or remove entries first; what is remembered is in every prompt, so it is kept small.',
  memory_entry: 'Give words, or an id, that exactly one entry has.',
  memory_unusable: 'Make the folder <home>/memory readable and writable for this user.',
  memory_provider: 'Set memory.provider to one that exists, and give what it needs to reach its server.',

  // the configuration
  config_invalid: 'Correct the key named in the message; `moirai config check` tries the file without starting.',
  config_unreadable: 'Make the file readable for this user, and check that it is YAML.',

  // the gateway
  gateway_running:
    'One gateway per home. Take its place with `moirai gateway run --replace`, stop it with `moirai gateway stop`, or use another --home.',
  gateway_not_running: 'Start it with `moirai gateway start`, or in the foreground with `moirai gateway run`.',
  gateway_not_started: 'The end of <home>/logs/gateway.log says more; `moirai gateway run` shows it in the foreground.',
  gateway_not_stopped: 'Look with `moirai gateway status`; `moirai gateway stop --now` cuts what still runs.',
  gateway_unreachable:
    'Check that it runs, and its address; its log says more. One that hangs can be killed: the next start settles the rest.',
  gateway_slow: 'Look at its log and at the load of its machine, and try again.',
  gateway_refused_key: 'Give the gateway.api_key of that gateway to `moirai space`: --gateway URL,env:NAME.',
  gateway_elsewhere: 'Give the command on the machine, or in the container, in which the gateway runs.',
  service_not_ours: 'Move the file away, or give the service another --name.',
  port_in_use: 'Another program listens there. Set gateway.port (or --port) to a free port, or stop that program.',
  draining:
    'The gateway takes nothing new: it is about to stop, or was drained. Send it again in a moment; nothing was taken.',
  idempotency_conflict: 'The same idempotency key was used with another body. Use a fresh key for a new request.',
  turn_interrupted:
    'The turn was taken and goes on when the gateway is back within sessions.resume_window. Do not send it again; GET /v1/turns/{turn_id} says what became of it.',
  turn_stopped: 'The turn was stopped on purpose. Say it again to have it done.',
  turn_timeout: 'The agent made no progress for agent.turn_timeout and was stopped. Try again, or raise the limit.',
  unknown_command: 'Send /help to see every command.',

  // what is scheduled
  bad_schedule:
    'Schedules are "0 9 * * *" (minute, hour, day, month, weekday), "every 30m", "at 2026-11-20T09:00" or "in 20m".',
  job_not_found: 'List jobs with `moirai cron list`, or /cron; an id may be shortened to any unique prefix.',
  job_ambiguous: 'Give more characters of the id.',
  job_forbidden: 'What a job does must not make jobs: it could never be stopped. Make them in a conversation.',

  // chat platforms
  platform_unknown: 'List those that are configured, and those that can be added, with `moirai platforms list`.',
  platform_refused:
    'The server of the platform did not take the credential. Check it there, and give the right one to `moirai platforms add`.',
  platform_unreachable:
    'The server of the platform did not answer. Check the network and the address; `moirai platforms add --force` writes settings untried.',
  platform_not_ready:
    'It is being connected, has failed, or stands by for another gateway: `moirai platforms list` says which. Nothing was taken.',
  platform_package:
    'Install the package where the message says, and give its adapter the options of its own page; `moirai platforms test` tries it.',
  webhook_refused:
    'Give sender and route the same secret, sign as platforms.webhook.routes says, and set the clock of the sender.',

  // who may talk, and where
  access_revoked: 'Whoever runs the gateway has to let this person in: `moirai pairing list` shows who asked.',
  pairing_unknown: 'Check the code and the platform; `moirai pairing list` shows who waits. Codes count for an hour.',
  api_key_exists: 'Choose another name, or revoke the key that has it: `moirai keys list` shows all.',
  api_key_unknown: 'List keys with `moirai keys list`; those of config.yaml are taken out there.',
  pairing_locked: 'Wait, or approve by the request id that `moirai pairing list --json` shows.',
  approval_not_found: 'List what waits, and what is always allowed, with `moirai approvals list`.',
  approval_over: 'The first answer counts. If the agent still needs it, it asks again.',
  approval_forbidden: 'Only who asked for the work, or an admin, may answer this.',
  target_unknown:
    'Targets are origin, local, home, <platform>:<chat>[:<thread>] or a name that `moirai send --list` shows.',

  // the model and its tools
  model_unauthorized: 'The model server refused the key. Check model.api_key, or the variable it comes from.',
  model_rate_limited: 'The model server asks to slow down. Try again later, or raise the limit with the provider.',
  model_unavailable: 'The model server did not answer properly. Check model.base_url and that the server runs.',
  model_timeout: 'The model server took too long. Try again, or use a faster model.',
  model_cut: 'The stream from the model server broke off. Try again; finished steps are kept.',
  model_unknown: 'The model server does not know this model. List models with /model.',
  model_refused: 'The model server refused the request; the message says why.',
  model_overflow: 'The conversation is longer than the model can read. Send /compress, or /new for a fresh one.',
  model_empty: 'The model ended its answer without a word. Say it again, or choose another model with /model.',
  too_many_steps: 'The agent used all of agent.max_steps in one turn. Ask for a smaller part, or raise the limit.',
  sandbox_unavailable:
    'Install bubblewrap and allow user namespaces, or set agent.sandbox to off. `moirai doctor` says whether it works.',
  tool_failed: 'The tool reported an error; the agent was told.',

  // HTTP
  unauthorized: 'Send `gateway.api_key`, or a key of `moirai keys add`, as `Authorization: Bearer <key>`.',
  forbidden_client: 'Without gateway.api_key the gateway answers only to its own machine. Set a key to let others in.',
  forbidden_host: 'Without gateway.api_key the gateway answers only to a loopback address as its Host.',
  forbidden_scope: 'Ask for a key with the scope that the message names: `moirai keys add NAME --scope chat,read`.',
  forbidden_origin: 'Pages of other origins may not call the gateway.',
  too_many_failures: 'Too many wrong keys came from this address. The right one is let in all the same.',
  not_found: 'See /openapi.json for what there is.',
  method_not_allowed: 'See /openapi.json for the methods of this path.',
  body_too_large: 'Send a smaller body.',
  unsupported_media_type: 'Send JSON, with the header `Content-Type: application/json`.',

  // the command line
  usage: 'Run the command with -h to see how it is called.',
  home_unusable: 'Point MOIRAI_HOME or --home at a folder that this user may make and write to.',
  command_not_started: 'Check that the command exists and may be executed.',
  internal: 'This is a defect in Moirai. Please report it with the message and the stack.',
} as const;

export type ErrorCode = keyof typeof ERROR_HINTS;
