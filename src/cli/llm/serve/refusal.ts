// What a request is refused with: a status, and the body that OpenAI's clients read.

/** A request that is not answered. */
export class RequestRefusal extends Error {
  readonly status: number;
  readonly param: string | undefined;
  readonly code: string | undefined;

  constructor(status: number, message: string, details: { param?: string; code?: string } = {}) {
    super(message);
    this.status = status;
    this.param = details.param;
    this.code = details.code;
  }
}

/** The body of an error. */
export function errorBody(error: unknown): { readonly status: number; readonly body: object } {
  const status = error instanceof RequestRefusal ? error.status : 500;
  const message = error instanceof Error ? error.message : String(error);
  const type = status === 429 ? 'rate_limit_error' : status < 500 ? 'invalid_request_error' : 'server_error';
  const { param = null, code = null } = error instanceof RequestRefusal ? error : {};
  return { status, body: { error: { message, type, param, code } } };
}
