import type { ApprovalRequest } from '../agent/runner.ts';
import type { Session, Turn } from '../lifecycle/session.ts';
import { parseKey } from '../lifecycle/session-key.ts';
import { findHome } from '../outbound/home-channel.ts';
import { outgoingTo } from '../outbound/outgoing.ts';
import { type Access, promotionHint } from '../people/access.ts';
import { approvalButtons } from '../people/approval-texts.ts';
import { abilitiesAt } from '../platforms/abilities.ts';
import type { Platform, Place as PlatformPlace } from '../platforms/platform.ts';
import type { Store } from '../store/port.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import { accountOf, deliverable } from '../turns/reply-target.ts';
import { adminNeededText, adminQuestionText, questionText } from '../turns/texts.ts';

export interface QuestionDeps {
  readonly access: Access;
  readonly store: Store;
  readonly find: (platform: string) => Platform | null;
  readonly newDeliveryId: () => string;
}

type Speaker = Pick<Turn, 'userId' | 'userName'>;
type Place = Pick<DeliveryToMake, 'platform' | 'target'>;

/**
 * The messages by which people are asked to allow something. The conversation is always told. Where the person whose work
 * it is may not allow it, each admin is asked in the direct chat they last wrote in, or, when there is none, the home
 * channel.
 */
export async function questions(
  deps: QuestionDeps,
  session: Session,
  speaker: Speaker,
  { id, action }: ApprovalRequest & { readonly id: string },
): Promise<DeliveryToMake[]> {
  const hasButtons = ({ platform: name, target }: Place): boolean => {
    const platform = deps.find(name);
    return platform !== null && abilitiesAt(platform, target as unknown as PlatformPlace).buttons;
  };
  const send = (place: Place, text: string, buttons: boolean): DeliveryToMake[] => {
    const shape = buttons && hasButtons(place) ? { buttons: approvalButtons(id) } : {};
    return outgoingTo(place, text, deps.find(place.platform), deps.newDeliveryId(), shape);
  };
  const sendElsewhere = (place: Place, text: string): DeliveryToMake[] => {
    return send(place, hasButtons(place) ? text : `${text}\n/approve ${id} or /deny ${id}`, true);
  };
  const here = { platform: accountOf(session), target: session.origin ?? {} };
  if (await deps.access.mayApproveOwn(session.platform, speaker.userId)) return send(here, questionText(action), true);
  const { places, whom } = await adminPlaces(deps, session.key);
  const asked = whom === null ? `There is no admin to ask. ${promotionHint(session.platform, speaker.userId)}` : whom;
  const { type } = parseKey(session.key);
  // In a group an admin may be there to press it.
  const told = send(here, adminNeededText(action, asked), type !== 'dm');
  const question = adminQuestionText(
    action,
    nameOf(session, speaker),
    type === 'dm' ? 'their direct chat' : session.key,
  );
  return [...told, ...places.flatMap((place) => sendElsewhere(place, question))];
}

/** Where admins are asked, and how that is said; null where there is nobody to ask. */
async function adminPlaces(
  { access, store }: QuestionDeps,
  exceptKey: string,
): Promise<{ readonly places: readonly Place[]; readonly whom: string | null }> {
  const places: Place[] = [];
  for (const { platform, userId } of await access.admins()) {
    const chat = await directChat(store, platform, userId);
    if (chat !== null && chat.key !== exceptKey) places.push({ platform: accountOf(chat), target: chat.origin ?? {} });
  }
  if (places.length > 0) return { places, whom: 'The admins were asked.' };
  const home = await findHome(store);
  if (home === null || home.key === exceptKey) return { places: [], whom: null };
  return { places: [{ platform: home.platform, target: home.target }], whom: 'The home channel was asked.' };
}

/** Sessions of a person that are looked at for a direct chat. */
const LOOKED_AT = 100;

async function directChat(store: Store, platform: string, user: string): Promise<Session | null> {
  const { sessions } = await store.read('listSessions', {
    ...{ states: [], kinds: ['chat'], platforms: [platform], reasons: [] },
    ...{ key: null, user, text: null, since: null, cursor: null, limit: LOOKED_AT },
  });
  return sessions.find((session) => deliverable(session) && parseKey(session.key).type === 'dm') ?? null;
}

function nameOf({ platform }: Session, { userId, userName }: Speaker): string {
  const id = `${platform}:${userId ?? 'unknown'}`;
  return userName === null ? id : `${userName} (${id})`;
}
