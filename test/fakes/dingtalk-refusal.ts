/** How the server says no. */
export interface DingtalkRefusal {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** As the API says it: a status and a word. */
export function refuse(status: number, code: string, message: string): never {
  throw { status, body: { requestid: 'request-1', code, message } } satisfies DingtalkRefusal;
}

/** As the older API says it: status 200 and a number. */
export function refuseOld(errcode: number, errmsg: string): never {
  throw { status: 200, body: { errcode, errmsg } } satisfies DingtalkRefusal;
}
