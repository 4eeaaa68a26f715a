import type { IncomingMessage } from 'node:http';

import type { HttpReference } from '../reference/module-reference.ts';
import { redactUrl } from '../reference/module-reference.ts';
import { assertModulePreamble, SNIFF_BYTES } from '../reference/wasm-bytes.ts';
import { basicAuthorization } from './authorization.ts';
import { statusError } from './http-status.ts';
import { announcedLength, HttpTransfer, type ProgressListener, type TransferOptions } from './http-transfer.ts';

/** How to download. */
export interface DownloadOptions extends TransferOptions {
  readonly maxBytes: number;
  readonly onProgress?: ProgressListener;
}

/**
 * Downloads a module over HTTP or HTTPS.
 * @throws ModuleError `source-…` (`source-forbidden` only for tenants), `module-too-large`, `not-wasm`, `file-unreadable` (an
 * authority); the signal's reason when it is aborted
 */
export async function downloadModule(reference: HttpReference, options: DownloadOptions): Promise<Uint8Array> {
  return await HttpTransfer.run(reference.shown, options, async (transfer) => {
    const headers = { accept: 'application/wasm, application/octet-stream;q=0.9, */*;q=0.1' };
    const { response, url } = await transfer.send({
      url: reference.url,
      headers,
      authorization: basicOf(reference.url),
    });
    if (response.statusCode !== 200) {
      throw statusError(redactUrl(url.href), response.statusCode ?? 0, response.headers);
    }
    return await readModule(transfer, response, reference.shown, options);
  });
}

/** Reads a module; ends the transfer as soon as its first bytes are not those of one. */
async function readModule(
  transfer: HttpTransfer,
  response: IncomingMessage,
  shown: string,
  { maxBytes, onProgress }: DownloadOptions,
): Promise<Uint8Array> {
  let head = Buffer.alloc(0);
  const sniff = (): void => assertModulePreamble(head, shown, response.headers['content-type']);
  const onChunk = (chunk: Uint8Array): void => {
    if (head.length < SNIFF_BYTES) {
      head = Buffer.concat([head, chunk.subarray(0, SNIFF_BYTES - head.length)]);
      if (head.length === SNIFF_BYTES) {
        sniff();
      }
    }
  };
  await transfer.reserve(Math.min(announcedLength(response) ?? maxBytes, maxBytes));
  const bytes = await transfer.read(response, { maxBytes, onChunk, onProgress });
  sniff();
  return bytes;
}

/** The credentials of a URL, for the header `Authorization`. */
function basicOf({ username, password }: URL): string | undefined {
  return username === '' && password === ''
    ? undefined
    : basicAuthorization(decodeURIComponent(username), decodeURIComponent(password));
}
