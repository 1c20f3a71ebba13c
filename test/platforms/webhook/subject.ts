import { descriptor } from '../../../src/platforms/webhook/descriptor.ts';
import type { Scheme } from '../../fakes/webhook-sender.ts';
import type { SubmissionForgery, SubmissionSubject } from '../contract/submitting.ts';
import { WebhookWorld } from './world.ts';

/** Whoever signs nothing of the time cannot be too late, and who signs nothing at all cannot change it. */
const SIGNED: readonly SubmissionForgery[] = ['unsigned', 'forged', 'changed'];

const mode = (title: string, scheme: Scheme, forgeries: readonly SubmissionForgery[]) => {
  return { title, forgeries, open: () => new WebhookWorld(scheme) };
};

export const subject: SubmissionSubject = {
  kind: 'submissions',
  descriptor,
  modes: [
    mode('signed by Standard Webhooks', 'standard', [...SIGNED, 'stale']),
    mode('signed as GitHub does', 'github', SIGNED),
    mode('signed as Stripe does', 'stripe', [...SIGNED, 'stale']),
    mode('signed as Slack does', 'slack', [...SIGNED, 'stale']),
    mode('with a secret in a header', 'header', ['unsigned', 'forged']),
  ],
};
