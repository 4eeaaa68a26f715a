// Continue tokens of lists, in the format of API servers (k8s.io/apiserver, pkg/storage/continue.go).
import { posix } from 'node:path';
import { ApiError } from '../../../cluster/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import { parseJson } from '../../../values/index.ts';

/** The position of a page in a list. */
export interface ListPosition {
  /** The revision of all pages; -1 for the newest. */
  readonly revision: number;
  /** The first path of the next page: `namespace/name`. */
  readonly start: string;
}

const VERSION = 'meta.k8s.io/v1';

export function encodeContinue({ revision, start }: ListPosition): string {
  return Buffer.from(JSON.stringify({ v: VERSION, rv: revision, start })).toString('base64url');
}

/** @throws ApiError 400 for a malformed token. */
export function decodeContinue(text: string): ListPosition {
  let value: unknown;
  try {
    value = parseJson(Buffer.from(text, 'base64url').toString());
  } catch {
    value = undefined;
  }
  if (!isJsonObject(value) || value['v'] !== VERSION) {
    throw ApiError.badRequest('invalid continue token: continue key is not valid');
  }
  const { rv, start } = value;
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0) {
    throw ApiError.badRequest(
      'invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)',
    );
  }
  if (typeof start !== 'string' || start === '') {
    throw ApiError.badRequest(
      'invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)',
    );
  }
  if (posix.resolve('/', start) !== (start.startsWith('/') ? start : `/${start}`)) {
    throw ApiError.badRequest(`invalid continue token: continue key is not valid: ${start}`);
  }
  return { revision: rv, start };
}
