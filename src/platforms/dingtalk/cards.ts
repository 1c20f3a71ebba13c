import { createHash } from 'node:crypto';
import { pause } from '../deadline.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../fields.ts';
import { type Button, type Place, SendFailure } from '../platform.ts';
import { isOutsider } from './abilities.ts';
import type { DingtalkApi } from './api.ts';
import { Refusal, sendFailureOf } from './failures.ts';
import { renderCard } from './render.ts';

/** How a template is filled. */
export interface CardOptions {
  readonly template: string;
  /** The variable that holds the words. */
  readonly variable: string;
}

/** The variable of a template that holds a group of buttons. */
const BUTTONS = 'btns';
const NO_BUTTONS = '[]';
const MORE_TRIES = 2;
const AGAIN_MS = 1000;
const MOST_LABEL = 60;
const MAX_BUTTON_BYTES = 64;

/** Cards of the app, each under an id of ours: whatever is repeated with the same id happens to the same card. */
export class Cards {
  readonly #api: DingtalkApi;
  readonly #options: CardOptions;
  #frames = 0;

  constructor(api: DingtalkApi, options: CardOptions) {
    this.#api = api;
    this.#options = options;
  }

  /** The id of the card that a key names, at every attempt and in every process. */
  idOf(place: Place, key: string): string {
    return `moirai-${digest(this.#api.app.robotCode, place.chat, key).slice(0, 40)}`;
  }

  /** Makes the card and shows it, empty. One that is there already stays as it is. Throws `SendFailure`. */
  async begin(place: Place, id: string, buttons: readonly Button[], signal: AbortSignal): Promise<void> {
    const { runtime } = this.#api.app;
    const card = this.#newCard(place, id, buttons);
    for (let tries = 0; ; tries += 1) {
      try {
        const answer = await this.#api.call({ path: '/v1.0/card/instances/createAndDeliver', json: card }, signal);
        return checkDelivered(answer);
      } catch (thrown) {
        if (isThere(thrown)) return;
        const failure = sendFailureOf(thrown, this.#api.redact);
        // The same id makes no second card, and one that nobody knows of would stay open.
        if (failure.kind !== 'uncertain' || tries >= MORE_TRIES || signal.aborted) throw failure;
        await pause(runtime, AGAIN_MS, signal);
      }
    }
  }

  /** Shows the whole text. The last time it is said so, and the card is finished. Throws `SendFailure`. */
  async write(id: string, markdown: string, isLast: boolean, signal: AbortSignal): Promise<void> {
    const content = renderCard(markdown);
    this.#frames += 1;
    const frame = {
      outTrackId: id,
      guid: digest(id, String(this.#api.app.runtime.now()), String(this.#frames), content).slice(0, 32),
      key: this.#options.variable,
      content,
      isFull: true,
      isFinalize: isLast,
      isError: false,
    };
    try {
      await this.#api.call({ path: '/v1.0/card/streaming', method: 'PUT', json: frame }, signal);
    } catch (thrown) {
      throw cardFailure(thrown, this.#api);
    }
  }

  /** Shows the answer to a press in place of the buttons, in a group to who pressed alone. Throws `SendFailure`. */
  async settle(id: string, place: Place, user: string, shown: string, signal: AbortSignal): Promise<void> {
    const { cardUpdateOptions, cardData, userPrivateData } = settledButtons(place, shown);
    const privateData = userPrivateData === undefined ? {} : { privateData: { [user]: userPrivateData } };
    const json = {
      ...{ outTrackId: id, userIdType: 1, cardUpdateOptions },
      ...(cardData === undefined ? {} : { cardData }),
      ...privateData,
    };
    try {
      await this.#api.call({ path: '/v1.0/card/instances', method: 'PUT', json }, signal);
    } catch (thrown) {
      throw cardFailure(thrown, this.#api);
    }
  }

  #newCard({ type, chat }: Place, outTrackId: string, buttons: readonly Button[]): Fields {
    const { robotCode } = this.#api.app;
    const { template: cardTemplateId, variable } = this.#options;
    if (isOutsider({ type, chat })) throw new SendFailure('there are no cards for people without a staff id', null);
    const card = {
      ...{ cardTemplateId, outTrackId, callbackType: 'STREAM', userIdType: 1 },
      cardData: { cardParamMap: { [variable]: '', [BUTTONS]: buttonsOf(buttons) } },
    };
    const space = { supportForward: true };
    const deliver = { robotCode, extension: { dynamicSummary: 'true' } };
    return type === 'dm'
      ? {
          ...card,
          openSpaceId: `dtv1.card//IM_ROBOT.${chat}`,
          imRobotOpenSpaceModel: space,
          imRobotOpenDeliverModel: { spaceType: 'IM_ROBOT', ...deliver },
        }
      : {
          ...card,
          openSpaceId: `dtv1.card//IM_GROUP.${chat}`,
          imGroupOpenSpaceModel: space,
          imGroupOpenDeliverModel: deliver,
        };
  }
}

/** What the answer to a press carries: the buttons become what is shown. */
export function settledButtons({ type }: Pick<Place, 'type'>, shown: string) {
  const label = [...shown].slice(0, MOST_LABEL).join('').toWellFormed();
  const buttons = JSON.stringify([{ text: label, color: 'gray', status: 'disabled' }]);
  const filled = { cardParamMap: { [BUTTONS]: buttons } };
  // In a group others may still have to answer.
  return type === 'dm'
    ? { cardUpdateOptions: { updateCardDataByKey: true }, cardData: filled }
    : { cardUpdateOptions: { updatePrivateDataByKey: true }, userPrivateData: filled };
}

function buttonsOf(buttons: readonly Button[]): string {
  if (buttons.length === 0) return NO_BUTTONS;
  return JSON.stringify(
    buttons.map(({ label, data }, at) => {
      if (Buffer.byteLength(data) > MAX_BUTTON_BYTES) {
        const problem = `the data of the button ${label} has more than ${MAX_BUTTON_BYTES} bytes`;
        throw new SendFailure(problem, null, 'bad_format');
      }
      const event = { type: 'sendCardRequest', params: { actionId: `button${at}`, params: { data } } };
      return { text: label, color: at === 0 ? 'blue' : 'gray', status: 'normal', event };
    }),
  );
}

/** A card can be made and not be shown: what is written to it then, nobody reads. */
function checkDelivered(answer: Fields): void {
  const results = listOf(fieldsOf(answer.result)?.deliverResults).map(fieldsOf);
  const failed = results.find((result) => result?.success === false);
  if (answer.success !== false && failed === undefined) return;
  const why = textOf(failed?.errorMsg, 200) ?? 'no place took it';
  throw new SendFailure(`the card was not delivered: ${why}`, null);
}

function isThere(thrown: unknown): boolean {
  if (!(thrown instanceof Refusal) || thrown.status >= 500) return false;
  return /exist|duplicate|已存在|重复/i.test(thrown.message) && !/not.{0,3}exist/i.test(thrown.message);
}

/** DingTalk answers with an error of its own where the card or its variable is not there: trying again has no use. */
function cardFailure(thrown: unknown, { redact }: DingtalkApi): SendFailure {
  const isHopeless = thrown instanceof Refusal && thrown.code === 'unknownError';
  return isHopeless ? new SendFailure(redact(thrown.message), null) : sendFailureOf(thrown, redact);
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
