import { refuse } from './dingtalk-refusal.ts';

/** A card as people see it. */
export interface FakeCard {
  readonly outTrackId: string;
  /** A group, or the staff id of who reads it. */
  readonly chat: string;
  params: Record<string, string>;
  /** What one person sees instead. */
  readonly own: Map<string, Record<string, string>>;
  content: string;
  stream: 'new' | 'open' | 'finished';
  /** How often it was written to. */
  writes: number;
}

interface CardButton {
  readonly text: string;
  readonly status: string;
  readonly event?: { readonly type: string; readonly params: { readonly actionId: string; readonly params: unknown } };
}

type Body = Readonly<Record<string, unknown>>;

/** DingTalk's cards: made once under an id, written to by frames that each have an id of their own. */
export class FakeCards {
  readonly all = new Map<string, FakeCard>();
  readonly #guids = new Set<string>();
  readonly template: string;
  readonly variable: string;
  readonly robotCode: string;
  /** Cards are made, and no place takes them. */
  undeliverable = false;

  constructor(template: string, variable: string, robotCode: string) {
    this.template = template;
    this.variable = variable;
    this.robotCode = robotCode;
  }

  createAndDeliver(body: Body): { readonly card: FakeCard; readonly answer: unknown } {
    const { cardTemplateId, outTrackId, openSpaceId, callbackType, userIdType } = body;
    if (cardTemplateId !== this.template) refuse(400, 'param.templateNotExist', 'the template does not exist');
    if (typeof outTrackId !== 'string' || outTrackId === '') refuse(400, 'param.outTrackIdEmpty', 'no outTrackId');
    if (this.all.has(String(outTrackId))) refuse(400, 'param.outTrackIdExist', 'outTrackId already exists');
    if (callbackType !== 'STREAM' || userIdType !== 1) refuse(400, 'param.error', 'callbackType and userIdType');
    const [, space, chat = ''] = /^dtv1\.card\/\/(IM_GROUP|IM_ROBOT)\.(.+)$/.exec(String(openSpaceId)) ?? [];
    const deliver = (space === 'IM_GROUP' ? body.imGroupOpenDeliverModel : body.imRobotOpenDeliverModel) as
      | { robotCode?: string; spaceType?: string }
      | undefined;
    const isRight = space === 'IM_GROUP' ? deliver?.robotCode === this.robotCode : deliver?.spaceType === 'IM_ROBOT';
    if (chat === '' || !isRight) refuse(400, 'param.deliverModel', 'the space and how it is delivered do not fit');
    const { cardParamMap } = body.cardData as { cardParamMap: Record<string, string> };
    checkTexts(cardParamMap);
    const card: FakeCard = {
      ...{ outTrackId: String(outTrackId), chat, params: cardParamMap, own: new Map() },
      ...{ content: cardParamMap[this.variable] ?? '', stream: 'new', writes: 0 },
    };
    const success = !this.undeliverable;
    if (success) this.all.set(card.outTrackId, card);
    const errorMsg = success ? '' : 'the robot is not in this space';
    const deliverResults = [{ spaceType: space, spaceId: chat, success, errorMsg, carrierId: 'carrier-1' }];
    return { card, answer: { success: true, result: { outTrackId, deliverResults } } };
  }

  /** Returns whether the card has become finished by it. */
  stream(body: Body): boolean {
    const { outTrackId, guid, key, content, isFull, isFinalize, isError } = body;
    const card = this.all.get(String(outTrackId));
    if (card === undefined || key !== this.variable) return refuse(500, 'unknownError', '未知错误');
    if (typeof guid !== 'string' || guid === '' || isFull !== true || isError !== false) {
      return refuse(400, 'param.error', 'guid, isFull and isError');
    }
    // The same frame again changes nothing.
    if (this.#guids.has(guid)) return false;
    this.#guids.add(guid);
    card.content = String(content);
    card.stream = isFinalize === true ? 'finished' : 'open';
    card.writes += 1;
    return isFinalize === true;
  }

  update(body: Body): void {
    const card = this.all.get(String(body.outTrackId));
    if (card === undefined) throw refuse(400, 'param.cardNotExist', 'the card does not exist');
    this.apply(card, body, null);
  }

  /** What an update, or the answer to a press, changes; `user` is who pressed. */
  apply(card: FakeCard, change: Body, user: string | null): void {
    const { cardData, userPrivateData, privateData, cardUpdateOptions } = change as {
      cardData?: { cardParamMap: Record<string, string> };
      userPrivateData?: { cardParamMap: Record<string, string> };
      privateData?: Record<string, { cardParamMap: Record<string, string> }>;
      cardUpdateOptions?: { updateCardDataByKey?: boolean; updatePrivateDataByKey?: boolean };
    };
    // Without the option an update takes the place of everything there was.
    if (cardData !== undefined) {
      checkTexts(cardData.cardParamMap);
      const before = cardUpdateOptions?.updateCardDataByKey === true ? card.params : {};
      card.params = { ...before, ...cardData.cardParamMap };
      if (cardUpdateOptions?.updateCardDataByKey !== true) card.content = card.params[this.variable] ?? '';
    }
    const own = { ...privateData, ...(userPrivateData && user !== null ? { [user]: userPrivateData } : {}) };
    for (const [person, { cardParamMap }] of Object.entries(own)) {
      checkTexts(cardParamMap);
      card.own.set(person, { ...card.own.get(person), ...cardParamMap });
    }
  }

  /** The buttons as one person sees them. */
  buttonsOf(card: FakeCard, user: string | null = null): readonly CardButton[] {
    const shown = { ...card.params, ...(user === null ? {} : card.own.get(user)) };
    return JSON.parse(shown.btns ?? '[]') as CardButton[];
  }
}

function checkTexts(params: Record<string, string>): void {
  if (Object.values(params).some((value) => typeof value !== 'string')) {
    refuse(400, 'param.error', 'the values of cardParamMap are texts');
  }
}
