import { descriptor } from '../../../src/platforms/webhook/descriptor.ts';
import { parseDelivery } from '../../../src/platforms/webhook/parse.ts';
import { readTemplate } from '../../../src/platforms/webhook/render.ts';
import { isFromSender } from '../../../src/platforms/webhook/verify.ts';
import { readSettings } from '../../../src/settings/read-settings.ts';
import { SCHEMES } from '../../fakes/webhook-sender.ts';

const routes = SCHEMES.map((signature) => {
  const written = { routes: { one: { secret: 'whsec_c2VjcmV0', signature } } };
  return readSettings(descriptor.settings, written, { home: '', variable: () => null }).value.routes.one!;
});
const fill = readTemplate('{{text}} {{a.b}} {{body}} {{body}} {{body}}');
const HEADERS = ['webhook-id', 'webhook-signature', 'stripe-signature', 'x-slack-signature', 'x-hub-signature-256'];

/** What of a webhook is read before and after its sender is known. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a delivery of a webhook': (text) => {
    for (const route of routes) {
      const request = {
        method: 'POST',
        path: 'one',
        query: new URLSearchParams(),
        headers: {},
        body: Buffer.from(text),
      };
      const delivery = parseDelivery(request, route);
      if (delivery.kind === 'submission') fill(delivery.body);
    }
  },
  'the signatures of a webhook': (text) => {
    const headers = Object.fromEntries(HEADERS.map((name) => [name, text]));
    const timed = { ...headers, 'webhook-timestamp': '0', 'stripe-signature': `t=0,${text}` };
    const request = {
      method: 'POST',
      path: 'one',
      query: new URLSearchParams(),
      headers: timed,
      body: Buffer.from('{}'),
    };
    for (const route of routes) isFromSender(request, route, 0);
  },
  'the prompt of a webhook': (text) => readTemplate(text)({ text, json: { text, a: { b: [text] } } }),
};
