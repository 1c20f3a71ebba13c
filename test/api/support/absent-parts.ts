import type { ApiBackend } from '../../../src/api/backend.ts';
import { MoiraiError } from '../../../src/errors/moirai-error.ts';

/** Turns that nobody asked for. */
export const NO_TURNS: ApiBackend['turns'] = {
  find: (id) => Promise.reject(new MoiraiError('turn_not_found', `there is no turn ${id}`)),
  wait: (id) => Promise.reject(new MoiraiError('turn_not_found', `there is no turn ${id}`)),
  follow: (id) => Promise.reject(new MoiraiError('turn_not_found', `there is no turn ${id}`)),
  stop: (id) => Promise.reject(new MoiraiError('turn_not_found', `there is no turn ${id}`)),
};

/** Nothing is asked. */
export const NO_APPROVALS: ApiBackend['approvals'] = {
  waiting: async () => [],
  answer: (id) => Promise.reject(new MoiraiError('approval_not_found', `there is no question ${id}`)),
};
