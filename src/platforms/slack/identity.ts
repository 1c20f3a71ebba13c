import { nameOf } from '../fields.ts';
import { UnusableToken } from './failures.ts';
import { idOf } from './places.ts';
import type { SlackBot } from './slack-client.ts';
import type { Self } from './text.ts';

/** Asks Slack who we are. Throws what `failures.ts` understands, also for a token that is no bot's. */
export async function askWho(bot: SlackBot, signal: AbortSignal): Promise<Self> {
  const answer = await bot.call('auth.test', {}, signal);
  const [userId, teamId, botId] = [answer.user_id, answer.team_id, answer.bot_id].map(idOf);
  if (!botId) {
    throw new UnusableToken(
      'the Slack token is that of a person, who would hear and answer himself: platforms.slack.token is the bot token, xoxb-...',
    );
  }
  if (!userId || !teamId) throw new UnusableToken('Slack does not say whose the token is');
  return { userId, botId, teamId, team: nameOf(answer.team) ?? teamId, name: nameOf(answer.user) ?? userId };
}
